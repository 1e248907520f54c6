//! The inventories are complete and name each code once, and the codes that
//! faults in the field produced get the class that they need.

use super::*;

/// The classes of Appendix A of PostgreSQL's manual, with `10` of version 18 and
/// `72` of the versions before 17.
const CLASSES: &str = "00 01 02 03 08 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 23 24 25 26 27 28 2B 2D \
     2F 34 38 39 3B 3D 3F 40 42 44 53 54 55 57 58 72 F0 HV P0 XX";

#[test]
fn the_inventory_has_every_class_of_postgres_once_and_in_order() {
    let classes: Vec<_> =
        POSTGRES.iter().map(|(code, ..)| *code).filter(|code| code.len() == 2).collect();
    assert_eq!(classes.join(" "), CLASSES.split_whitespace().collect::<Vec<_>>().join(" "));
    assert!(POSTGRES.is_sorted_by(|(one, ..), (next, ..)| one < next), "each once");
    for (code, _, class) in POSTGRES.iter().filter(|(code, ..)| code.len() > 2) {
        assert_eq!(code.len(), 5, "{code}: a whole code");
        assert_ne!(of_sqlstate(&format!("{}000", &code[..2])), *class, "{code}: as its class");
    }
}

#[test]
fn the_inventory_has_every_primary_code_of_sqlite_once() {
    let codes: Vec<_> = SQLITE.iter().map(|(code, ..)| *code).collect();
    let all: Vec<_> = (0..=28).chain([100, 101]).collect();
    assert_eq!(codes, all);
}

#[test]
fn every_code_gets_the_answer_that_it_needs() {
    let expected = [
        // A process that was stopped inside its transaction.
        ("25P03", Unavailable),
        ("25P04", Unavailable),
        ("25P02", Fault),
        ("25006", ReadOnly),
        // A server that stops, starts, fails over or is dropped.
        ("57P01", Unavailable),
        ("57P02", Unavailable),
        ("57P03", Unavailable),
        ("57P04", Unavailable),
        ("57P05", Unavailable),
        ("08006", Unavailable),
        ("53300", Unavailable),
        ("53200", Unavailable),
        ("53100", Full),
        ("58030", Unavailable),
        ("28P01", Unavailable),
        ("3D000", Unavailable),
        ("57014", Timeout),
        ("55P03", Timeout),
        ("40001", Conflict),
        ("40P01", Conflict),
        ("40003", Unavailable),
        ("23505", Constraint),
        ("42P01", Fault),
        ("XX000", Fault),
        ("XX001", Damaged),
        ("ZZ999", Fault),
        // SQLite, also in the extended forms.
        ("5", Conflict),
        ("6", Conflict),
        ("517", Conflict),
        ("261", Conflict),
        ("8", ReadOnly),
        ("1032", ReadOnly),
        ("13", Full),
        ("10", Unavailable),
        ("778", Unavailable),
        ("11", Damaged),
        ("2067", Constraint),
        ("787", Constraint),
        ("1", Fault),
        ("not a code", Fault),
    ];
    for (code, class) in expected {
        assert_eq!(of_code(code), class, "{code}");
    }
}

#[test]
fn a_lost_connection_is_unavailable_and_a_wrong_column_is_a_fault() {
    for lost in [sqlx::Error::PoolTimedOut, sqlx::Error::PoolClosed, sqlx::Error::WorkerCrashed] {
        assert_eq!(class(&lost), Unavailable, "{lost}");
    }
    assert_eq!(class(&sqlx::Error::RowNotFound), Fault);
    assert_eq!(class(&sqlx::Error::ColumnNotFound("x".to_owned())), Fault);
}
