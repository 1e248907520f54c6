//! Whose connection or request it is.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, header};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// An IPv4 address, or the /64 of an IPv6 one: a host usually has a whole /64,
/// so that a limit per address would be none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Peer(IpAddr);

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => {
                Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into()
            }
        })
    }
}

/// The header in which the proxy in front of us names its client. Only one is
/// believed: a proxy passes the other on as its client wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proxy {
    XForwardedFor,
    Forwarded,
}

impl Proxy {
    /// The last entry, which our own proxy wrote. Those before it are what its
    /// client claimed. `None` if there is none, or it names no address.
    pub(super) fn peer(self, headers: &HeaderMap) -> Option<Peer> {
        let name = match self {
            Self::XForwardedFor => X_FORWARDED_FOR,
            Self::Forwarded => header::FORWARDED,
        };
        let line = headers.get_all(name).iter().next_back()?.to_str().ok()?;
        let last = line.rsplit(',').next()?;
        let node = match self {
            Self::XForwardedFor => last,
            Self::Forwarded => last.split(';').find_map(|pair| {
                let (key, value) = pair.split_once('=')?;
                key.trim().eq_ignore_ascii_case("for").then_some(value)
            })?,
        };
        address(node.trim().trim_matches('"')).map(Peer::from)
    }
}

/// With a port or without, an IPv6 address in brackets or without.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Peer {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn the_addresses_of_one_host_are_one_peer() {
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff::9"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
        assert_ne!(peer("10.0.0.1"), peer("10.0.0.2"));
    }

    #[test]
    fn the_peer_is_what_the_last_proxy_wrote() {
        let found = |proxy: Proxy, lines: &[(&'static str, &str)]| {
            let lines = lines
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            let mut headers = HeaderMap::new();
            lines.for_each(|(name, value)| {
                headers.append(name, value);
            });
            proxy.peer(&headers)
        };
        let x = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
            found(Proxy::XForwardedFor, &lines)
        };
        assert_eq!(x(&["10.0.0.1"]), Some(peer("10.0.0.1")));
        assert_eq!(x(&["1.1.1.1, 10.0.0.2"]), Some(peer("10.0.0.2")), "the client wrote the first");
        assert_eq!(x(&["1.1.1.1", "10.0.0.3"]), Some(peer("10.0.0.3")), "two lines");
        assert_eq!(x(&["10.0.0.1:4711"]), Some(peer("10.0.0.1")));
        assert_eq!(x(&["2001:db8::1"]), Some(peer("2001:db8::1")));
        for nobody in ["", "unknown", "10.0.0.1, "] {
            assert_eq!(x(&[nobody]), None, "{nobody}");
        }
        let forwarded = |line: &str| found(Proxy::Forwarded, &[("forwarded", line)]);
        assert_eq!(forwarded("for=192.0.2.60;proto=http"), Some(peer("192.0.2.60")));
        assert_eq!(
            forwarded("for=1.1.1.1, proto=https;For=\"[2001:db8::17]:4711\""),
            Some(peer("2001:db8::17"))
        );
        assert_eq!(forwarded("for=_hidden"), None);
        // A client that sends the header that its proxy does not write gains nothing.
        let both = [("x-forwarded-for", "10.0.0.1"), ("forwarded", "for=1.1.1.1")];
        assert_eq!(found(Proxy::XForwardedFor, &both), Some(peer("10.0.0.1")));
    }
}
