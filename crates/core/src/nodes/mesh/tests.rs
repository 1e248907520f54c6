//! The networks that are fit to be a mesh, and the order of their addresses.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn cidr(text: &str) -> MeshCidr {
    MeshCidr::parse("mesh_cidr", text).unwrap()
}

#[test]
fn what_is_no_network_of_nodes_is_refused_with_its_reason() {
    for (text, problem) in [
        ("", "must be a network"),
        ("10.42.0.0", "must be a network"),
        ("10.42.0.0/+16", "must be a network"),
        ("10.42.0.0/0016", "must be a network"),
        ("example/16", "must be a network"),
        ("10.42.0.0/31", "8 to 30"),
        ("10.0.0.0/7", "8 to 30"),
        ("fd00::/127", "16 to 126"),
        ("127.0.0.0/8", "loopback"),
        ("224.0.0.0/8", "multicast"),
        ("0.0.0.0/8", "unspecified"),
        ("::/64", "unspecified"),
        ("ff02::/16", "multicast"),
        ("10.42.0.1/16", "the network of this address is 10.42.0.0/16"),
        ("fd00::1/64", "the network of this address is fd00::/64"),
    ] {
        let error = MeshCidr::parse("mesh_cidr", text).unwrap_err();
        assert_eq!(error.field, "mesh_cidr");
        assert!(error.problem.contains(problem), "{text}: {error}");
    }
    assert_eq!(cidr("10.42.0.0/16").to_string(), "10.42.0.0/16");
    assert_eq!(cidr("FD00:42:0::/64").to_string(), "fd00:42::/64");
    assert_eq!(cidr(&MeshCidr::DEFAULT.to_string()), MeshCidr::DEFAULT);
    assert_eq!(MeshCidr::DEFAULT.capacity(), (1 << 22) - 3);
}

#[test]
fn network_gateway_and_broadcast_are_nobodys() {
    for (text, first, last, capacity) in [
        ("10.42.0.0/30", "10.42.0.2", "10.42.0.2", 1),
        ("10.42.0.0/29", "10.42.0.2", "10.42.0.6", 5),
        ("10.42.0.0/16", "10.42.0.2", "10.42.255.254", 65_533),
        ("fd00::/126", "fd00::2", "fd00::2", 1),
        ("fd00::/64", "fd00::2", "fd00::ffff:fffe", (1 << 32) - 3),
    ] {
        let mesh = cidr(text);
        assert_eq!(mesh.capacity(), capacity, "{text}");
        let address = |host: i64| mesh.address(host).map(|ip| ip.to_string());
        assert_eq!(address(2).as_deref(), Some(first), "{text}");
        assert_eq!(address(capacity + 1).as_deref(), Some(last), "{text}");
        for host in [i64::MIN, -1, 0, 1, capacity + 2, i64::MAX] {
            assert_eq!(mesh.address(host), None, "{text} {host}");
        }
    }
}

#[test]
fn a_pool_grows_by_its_size_within_bounds_up_to_the_end_of_the_network() {
    for (text, highest, expected) in [
        ("10.42.0.0/16", None, 2..=17),
        ("10.42.0.0/16", Some(17), 18..=33),
        ("10.42.0.0/16", Some(101), 102..=201),
        ("10.42.0.0/16", Some(5_001), 5_002..=6_025),
        ("10.42.0.0/16", Some(65_000), 65_001..=65_534),
        ("10.42.0.0/29", None, 2..=6),
        ("fd00::/126", None, 2..=2),
    ] {
        assert_eq!(cidr(text).extension(highest), expected, "{text} {highest:?}");
    }
    for (text, highest) in [("10.42.0.0/29", 6), ("10.42.0.0/16", 65_534), ("fd00::/126", 2)] {
        assert!(cidr(text).extension(Some(highest)).is_empty(), "{text} has no more");
    }
}

/// The table as a store keeps it: each number, and whether its node is live.
#[derive(Debug, Default)]
struct Holders(BTreeMap<i64, bool>);

impl Holders {
    /// The pool of an enrolment, extended if nothing in it is free.
    fn pool(&mut self, cidr: MeshCidr) -> MeshPool {
        if self.0.values().all(|live| *live) {
            let highest = self.0.keys().next_back().copied();
            self.0.extend(cidr.extension(highest).map(|host| (host, false)));
        }
        let free = self.0.iter().find(|(_, live)| !**live).map(|(host, _)| *host);
        MeshPool { cidr, free }
    }

    fn live(&self) -> impl Iterator<Item = i64> + '_ {
        self.0.iter().filter(|(_, live)| **live).map(|(host, _)| *host)
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Enrol,
    /// The live node at this index leaves.
    Leave(usize),
    /// All nodes leave, and the project gets another network.
    Move(&'static str),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        6 => Just(Operation::Enrol),
        3 => (0..40_usize).prop_map(Operation::Leave),
        1 => prop::sample::select(vec!["10.0.0.0/28", "10.0.0.0/30", "fd00::/124", "fd00::/126"])
            .prop_map(Operation::Move),
    ];
    prop::collection::vec(operation, 0..120)
}

proptest! {
    #[test]
    fn addresses_are_unique_dense_and_exhausted_only_when_all_are_in_use(operations in operations()) {
        let mut mesh = cidr("10.0.0.0/28");
        let mut holders = Holders::default();
        for operation in operations {
            match operation {
                Operation::Enrol => {
                    let live: BTreeSet<i64> = holders.live().collect();
                    let free = (FIRST_HOST..).find(|host| !live.contains(host)).unwrap();
                    match holders.pool(mesh).next() {
                        Ok(given) => {
                            prop_assert_eq!(given.host, free, "the lowest free one");
                            prop_assert_eq!(mesh.address(free), Some(given.ip));
                            holders.0.insert(free, true);
                        }
                        Err(refusal) => {
                            prop_assert_eq!(refusal.kind, ErrorKind::PoolExhausted);
                            prop_assert_eq!(live.len(), usize::try_from(mesh.capacity()).unwrap());
                        }
                    }
                }
                Operation::Leave(place) => {
                    let host = holders.live().nth(place);
                    if let Some(host) = host {
                        holders.0.insert(host, false);
                    }
                }
                Operation::Move(network) => {
                    holders.0.clear();
                    mesh = cidr(network);
                }
            }
        }
    }
}
