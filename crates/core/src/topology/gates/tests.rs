//! The decision table of the gates. Its verdicts are written by hand; the test only looks up
//! the row of each combination, and there is exactly one.

use std::time::Duration;

use super::*;

/// door | caller | role | lock | count | inventory | verdict
///
/// Doors: `down`, `apply`, `swap` (the old one goes first), `surge` (the new one works first),
/// `delete`, `glass`. Callers: viewer, operator, admin. Roles: `cp`, `worker`, `lb`.
/// Counts: `spare` is one of 4 Ready with min 1; `edge` one of 2 Ready with min 2, 3 declared;
/// `last` the only Ready one with min 0, 1 declared, 2 workers behind; `idle` is not Ready
/// itself, beside 1 Ready with min 2, 3 declared.
/// Inventory: `same`, `none`, `old`, `differs`.
const TABLE: &str = "
down apply swap surge | viewer          | *         | *        | *               | *        | forbidden
down apply swap       | operator admin  | cp        | *        | *               | *        | control_plane_immutable
down apply swap       | operator admin  | worker lb | locked   | *               | *        | delete_locked
down apply swap       | operator admin  | worker lb | free     | edge            | *        | scale_min_violation
down apply swap       | operator admin  | worker    | free     | spare last idle | none old | inventory_unavailable
down apply swap       | operator admin  | worker    | free     | spare last idle | differs  | inventory_mismatch
down apply swap       | operator admin  | worker    | free     | spare last idle | same     | passes
down apply swap       | operator admin  | lb        | free     | spare last idle | none old | inventory_unavailable
down apply swap       | operator admin  | lb        | free     | spare last idle | differs  | inventory_mismatch
down apply swap       | operator admin  | lb        | free     | spare idle      | same     | passes
down apply swap       | operator admin  | lb        | free     | last            | same     | last_load_balancer
surge                 | operator admin  | *         | *        | *               | none old | inventory_unavailable
surge                 | operator admin  | *         | *        | *               | differs  | inventory_mismatch
surge                 | operator admin  | *         | *        | *               | same     | passes
delete glass          | viewer operator | *         | *        | *               | *        | forbidden
delete                | admin           | cp        | *        | edge last       | *        | quorum_violation
delete                | admin           | cp        | *        | spare idle      | none old | inventory_unavailable
delete                | admin           | cp        | *        | spare idle      | differs  | inventory_mismatch
delete                | admin           | cp        | *        | spare idle      | same     | passes
delete                | admin           | worker    | *        | *               | none old | inventory_unavailable
delete                | admin           | worker    | *        | *               | differs  | inventory_mismatch
delete                | admin           | worker    | *        | *               | same     | passes
delete                | admin           | lb        | *        | *               | none old | inventory_unavailable
delete                | admin           | lb        | *        | *               | differs  | inventory_mismatch
delete                | admin           | lb        | *        | last            | same     | last_load_balancer
delete                | admin           | lb        | *        | spare edge idle | same     | passes
glass                 | admin           | *         | *        | *               | *        | passes
";

const DOORS: [(&str, Door); 6] = [
    ("down", Door::ScaleDown),
    ("apply", Door::Apply),
    ("swap", Door::Replace { surge: false }),
    ("surge", Door::Replace { surge: true }),
    ("delete", Door::Delete { break_glass: false }),
    ("glass", Door::Delete { break_glass: true }),
];
const ROLES: [(&str, NodeRole); 3] =
    [("cp", NodeRole::ControlPlane), ("worker", NodeRole::Worker), ("lb", NodeRole::LoadBalancer)];
/// Whether it is counted, how many others are, the minimum, and how many are declared.
const COUNTS: [(&str, bool, u32, u32, u32); 4] = [
    ("spare", true, 3, 1, 4),
    ("edge", true, 1, 2, 3),
    ("last", true, 0, 0, 1),
    ("idle", false, 1, 2, 3),
];

fn inventories() -> [(&'static str, Inventory); 4] {
    let compared = |seconds, unknown: &[&str]| Inventory::Compared {
        age: Duration::from_secs(seconds),
        unknown: unknown.iter().map(|name| (*name).to_owned()).collect(),
        missing: Vec::new(),
    };
    [
        ("same", compared(3, &[])),
        ("none", Inventory::Unavailable { reason: "timed out".to_owned() }),
        ("old", compared(31, &[])),
        ("differs", compared(3, &["stray"])),
    ]
}

fn verdict(checked: &Result<(), Refusal>) -> &'static str {
    match checked {
        Ok(()) => "passes",
        Err(refusal) => refusal.kind.code(),
    }
}

fn expected(combination: [&str; 6]) -> &'static str {
    let matches = |row: &&&str| {
        let cells: Vec<&str> = row.split('|').collect();
        assert_eq!(cells.len(), 7, "{row}");
        let fits = |(cell, value): (&&str, &str)| {
            cell.trim() == "*" || cell.split_whitespace().any(|one| one == value)
        };
        cells.iter().zip(combination).all(fits)
    };
    let rows: Vec<&str> = TABLE.lines().filter(|line| !line.is_empty()).collect();
    let found: Vec<&&str> = rows.iter().filter(matches).collect();
    assert_eq!(found.len(), 1, "{combination:?} has the rows {found:?}");
    let last = found.first().and_then(|row| row.rsplit('|').next());
    last.map(str::trim).expect("a verdict")
}

#[test]
fn every_combination_has_the_verdict_of_its_row() {
    let mut asked = 0;
    for (door_name, door) in DOORS {
        for &caller in Role::ALL {
            for (role_name, role) in ROLES {
                for (lock, delete_lock) in [("locked", true), ("free", false)] {
                    for (count, counted, others, min, declared) in COUNTS {
                        for (listed, inventory) in &inventories() {
                            let checked = ask(&Question {
                                door,
                                caller,
                                server: "worker-1",
                                group: "workers",
                                role,
                                delete_lock,
                                min,
                                control_planes: ControlPlanes {
                                    declared,
                                    others,
                                    under_way: false,
                                },
                                counted,
                                others,
                                load_balancers: others,
                                backends: 2,
                                inventory,
                            });
                            let combination =
                                [door_name, caller.as_str(), role_name, lock, count, *listed];
                            assert_eq!(verdict(&checked), expected(combination), "{combination:?}");
                            asked += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(asked, 6 * 3 * 3 * 2 * 4 * 4);
}

fn mk_question(inventory: &Inventory) -> Question<'_> {
    Question {
        door: Door::ScaleDown,
        caller: Role::Operator,
        server: "worker-3",
        group: "workers",
        role: NodeRole::Worker,
        delete_lock: true,
        min: 3,
        control_planes: ControlPlanes { declared: 3, others: 2, under_way: false },
        counted: true,
        others: 2,
        load_balancers: 1,
        backends: 2,
        inventory,
    }
}

#[test]
fn the_details_name_every_gate_that_refuses() {
    let inventory = Inventory::Unavailable { reason: "timed out".to_owned() };
    let refusal = ask(&mk_question(&inventory)).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::DeleteLocked);
    let details = refusal.details.unwrap();
    let codes: Vec<_> = details["gates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gate| gate["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["delete_locked", "scale_min_violation", "inventory_unavailable"]);
    let unlocked = Question { delete_lock: false, ..mk_question(&inventory) };
    let details = ask(&unlocked).unwrap_err().details.unwrap();
    assert_eq!((&details["remaining"], &details["min"]), (&json!(2), &json!(3)));
}

#[test]
fn control_planes_are_replaced_one_at_a_time() {
    let inventory = Inventory::Compared { age: Duration::ZERO, unknown: vec![], missing: vec![] };
    let of = |others, under_way| Question {
        door: Door::Replace { surge: true },
        role: NodeRole::ControlPlane,
        control_planes: ControlPlanes { declared: 3, others, under_way },
        ..mk_question(&inventory)
    };
    assert_eq!(ask(&of(2, true)).unwrap_err().kind, ErrorKind::ReplacementUnderWay);
    assert!(ask(&of(2, false)).is_ok());
    assert!(ask(&of(1, false)).is_ok(), "with the new one there are two");
    // The old one may be the only one that has the data of the cluster.
    assert_eq!(ask(&of(0, false)).unwrap_err().kind, ErrorKind::QuorumViolation);
    let worker = Question { role: NodeRole::Worker, ..of(0, true) };
    assert!(ask(&worker).is_ok(), "workers need not");
}

/// Half of the declared ones and one more, whatever the number.
#[test]
fn the_quorum_is_more_than_half() {
    let inventory = Inventory::Compared { age: Duration::ZERO, unknown: vec![], missing: vec![] };
    for (declared, quorum) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (7, 4)] {
        for others in 0..declared {
            let checked = ask(&Question {
                door: Door::Delete { break_glass: false },
                caller: Role::Admin,
                role: NodeRole::ControlPlane,
                control_planes: ControlPlanes { declared, others, under_way: false },
                ..mk_question(&inventory)
            });
            assert_eq!(checked.is_ok(), others >= quorum, "{others} of {declared}");
        }
    }
}
