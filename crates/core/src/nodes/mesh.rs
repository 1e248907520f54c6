//! The mesh of a project: the network from which its nodes get addresses, and
//! the rules for them.
//!
//! An address is a host number in the network. The pool of a project has a row
//! for each number from the first to the highest; a live node has it, or it is
//! free. A node gets the lowest free number, so a number is assigned again at
//! once when its node has left. (Rejected: a cool-down. Peers are known by their
//! public key, so a successor cannot read what is still sent to the node that
//! left, and a small network must not run out of addresses under retries.)
//!
//! The pool grows ahead of its use, by [`MeshCidr::extension`]. So an enrolment
//! locks one free number and nothing that other enrolments need. (Rejected: a
//! counter. It would be locked until the commit is on disk, so a project would
//! have one enrolment at a time.)

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use crate::error::{ErrorKind, Refusal};
use crate::text::InvalidText;

/// A network in CIDR notation that is fit to be a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeshCidr {
    network: IpAddr,
    prefix: u8,
}

/// 0 names the network, and 1 is reserved for a gateway.
const FIRST_HOST: i64 = 2;

/// An IPv6 network can have far more hosts. Only 2^32 of them are used, a
/// number that fits every integer type on the way.
const MAX_HOST_BITS: u32 = 32;

/// How many numbers an extension adds to a pool: as many as it has, within these
/// bounds. A small project gets few rows, and a large one is extended seldom.
const EXTENSION: (i64, i64) = (16, 1_024);

impl MeshCidr {
    /// The mesh of a project that names none: the shared address space of
    /// RFC 6598, which neither private networks nor clusters use. 2^22 - 3 nodes.
    pub const DEFAULT: Self =
        Self { network: IpAddr::V4(Ipv4Addr::new(100, 64, 0, 0)), prefix: 10 };

    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidText> {
        let invalid = |problem: &str| InvalidText::new(field, problem);
        let shape = "must be a network like 10.42.0.0/16 or fd00:42::/64";
        let (network, prefix) = text.split_once('/').ok_or_else(|| invalid(shape))?;
        let digits = (1..=3).contains(&prefix.len()) && prefix.chars().all(|c| c.is_ascii_digit());
        let network: IpAddr = network.parse().map_err(|_| invalid(shape))?;
        let prefix: u8 = prefix.parse().ok().filter(|_| digits).ok_or_else(|| invalid(shape))?;
        let (fits, range) = match network {
            IpAddr::V4(_) => ((8..=30).contains(&prefix), "must have a prefix of 8 to 30"),
            IpAddr::V6(_) => ((16..=126).contains(&prefix), "must have a prefix of 16 to 126"),
        };
        if !fits {
            return Err(invalid(range));
        }
        let zero = match network {
            IpAddr::V4(address) => address.octets()[0] == 0,
            IpAddr::V6(address) => address.segments()[0] == 0,
        };
        if zero || network.is_loopback() || network.is_multicast() {
            return Err(invalid("must not be a loopback, multicast or unspecified network"));
        }
        let cidr = Self { network, prefix };
        if cidr.network_address() != network {
            return Err(invalid(&format!(
                "must not have host bits set; the network of this address is {}/{prefix}",
                cidr.network_address()
            )));
        }
        Ok(cidr)
    }

    /// The address of a host; `None` for a number that is never assigned.
    pub fn address(self, host: i64) -> Option<IpAddr> {
        if !(FIRST_HOST..=self.last_host()).contains(&host) {
            return None;
        }
        let host = u32::try_from(host).ok()?;
        Some(match self.network {
            IpAddr::V4(network) => Ipv4Addr::from_bits(network.to_bits() | host).into(),
            IpAddr::V6(network) => Ipv6Addr::from_bits(network.to_bits() | u128::from(host)).into(),
        })
    }

    /// The numbers that the next extension adds to a pool whose highest number is
    /// this one; none if it has all numbers of the network.
    pub fn extension(self, highest: Option<i64>) -> RangeInclusive<i64> {
        let first = highest.map_or(FIRST_HOST, |highest| highest + 1);
        let (fewest, most) = EXTENSION;
        let last = first + (first - FIRST_HOST).clamp(fewest, most) - 1;
        first..=last.min(self.last_host())
    }

    /// How many nodes the network has room for.
    pub fn capacity(self) -> i64 {
        self.last_host() - FIRST_HOST + 1
    }

    /// The last number is the broadcast of IPv4; IPv6 is counted the same way.
    fn last_host(self) -> i64 {
        (1_i64 << self.host_bits().min(MAX_HOST_BITS)) - 2
    }

    fn host_bits(self) -> u32 {
        let all = if self.network.is_ipv4() { 32 } else { 128 };
        all - u32::from(self.prefix)
    }

    fn network_address(self) -> IpAddr {
        let bits = self.host_bits();
        match self.network {
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() >> bits << bits).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> bits << bits).into(),
        }
    }
}

impl fmt::Display for MeshCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

/// The address of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeshAddress {
    /// The host number. Another node may have it after this one has left.
    pub host: i64,
    pub ip: IpAddr,
}

/// What an enrolment knows of its project's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeshPool {
    pub cidr: MeshCidr,
    /// The lowest free number, locked for this enrolment.
    pub free: Option<i64>,
}

impl MeshPool {
    /// The address of the next node.
    pub fn next(&self) -> Result<MeshAddress, Refusal> {
        let address = |host| Some(MeshAddress { host, ip: self.cidr.address(host)? });
        self.free.and_then(address).ok_or_else(|| {
            Refusal::new(
                ErrorKind::PoolExhausted,
                format!(
                    "the mesh {} of the project has no address left for another node ({} are in \
                     use); delete resources, or declare this one in a project with a larger `mesh_cidr`",
                    self.cidr,
                    self.cidr.capacity()
                ),
            )
        })
    }
}

#[cfg(test)]
mod tests;
