//! Who owns which field, in every situation.

use proptest::prelude::*;

use super::*;

fn fields() -> impl Strategy<Value = Fields> {
    proptest::collection::btree_map("[a-d]", (0..3_i64).prop_map(|n| json!(n)), 0..4)
}

fn terms() -> Terms {
    Terms { defaults: Fields::from([("a".to_owned(), json!(0))]), computed: &["d"], fixed: &[] }
}

proptest! {
    /// Whatever was there: the fields of the document are set, what nobody wrote stays, and
    /// a second application changes nothing.
    #[test]
    fn a_document_sets_its_fields_and_leaves_the_rest(
        live in fields(), wanted in fields(), mine in proptest::option::of(fields()),
    ) {
        let done = plan(Some(&live), &wanted, mine.as_ref(), &[], &terms(), false).unwrap();
        for (path, value) in &wanted {
            prop_assert_eq!(done.target.get(path), Some(value));
        }
        let before = mine.clone().unwrap_or_default();
        for (path, value) in &live {
            if !wanted.contains_key(path) && !before.contains_key(path) {
                prop_assert_eq!(done.target.get(path), Some(value), "nobody wrote {}", path);
            }
        }
        for path in before.keys().filter(|path| !wanted.contains_key(*path) && *path != "d") {
            prop_assert!(!done.target.contains_key(path), "{} goes back", path);
        }
        let owned = done.owned.clone().or(mine).unwrap_or_default();
        let again =
            plan(Some(&done.target), &wanted, Some(&owned), &[], &terms(), false).unwrap();
        prop_assert_eq!(again.changes, vec![]);
        prop_assert_eq!(again.owned, None);
    }

    /// Nothing that another source owns changes, unless it is taken by force.
    #[test]
    fn what_another_source_owns_is_refused_or_taken(
        wanted in fields(), mine in fields(), theirs in fields(),
    ) {
        let other = Owner { source: "other".to_owned(), fields: theirs.clone() };
        let planned = |force| {
            let others = std::slice::from_ref(&other);
            plan(Some(&theirs), &wanted, Some(&mine), others, &terms(), force)
        };
        let differs = wanted.iter().any(|(path, v)| theirs.get(path).is_some_and(|t| t != v));
        match planned(false) {
            Ok(done) => {
                prop_assert!(!differs);
                for (path, value) in &theirs {
                    prop_assert_eq!(done.target.get(path), Some(value));
                }
                prop_assert!(done.taken.is_empty());
            }
            Err(refusal) => {
                prop_assert!(differs);
                prop_assert_eq!(refusal.kind, ErrorKind::FieldConflict);
                prop_assert!(refusal.message.contains("source `other`"), "{}", refusal.message);
            }
        }
        let forced = planned(true).unwrap();
        for owner in &forced.taken {
            for (path, value) in &owner.fields {
                prop_assert_eq!(forced.target.get(path), Some(value), "it keeps only what stays");
            }
        }
        prop_assert_eq!(differs, !forced.taken.is_empty());
    }

    #[test]
    fn nested_is_the_inverse_of_flatten(
        labels in proptest::collection::btree_map("[a-z./]{1,4}", "[a-z]{0,3}", 0..3),
        entries in proptest::collection::btree_map("[a-z.]{1,4}", 0..9_i64, 1..3),
    ) {
        let spec = json!({ "size": [1, 2], "entries": entries, "deep": { "x": { "y": 1 } } });
        let spec = spec.as_object().unwrap();
        let flat = flatten(&labels, spec, &["entries"]);
        prop_assert_eq!(nested(&flat, &["entries"]), (labels, spec.clone()));
    }
}

#[test]
fn a_default_that_is_written_out_is_no_difference() {
    let wanted = Fields::from([("a".to_owned(), json!(0))]);
    let done = plan(Some(&Fields::new()), &wanted, None, &[], &terms(), false).unwrap();
    assert_eq!((done.changes.len(), done.owned), (0, Some(wanted)));
}

#[test]
fn a_fixed_field_is_refused_and_every_one_is_named() {
    let terms = Terms { fixed: &["spec.engine", "spec.map."], ..Terms::default() };
    let live = Fields::from([
        ("spec.engine".to_owned(), json!("local")),
        ("spec.map.a".to_owned(), json!(1)),
    ]);
    let wanted = Fields::from([
        ("spec.engine".to_owned(), json!("manual")),
        ("spec.map.a".to_owned(), json!(2)),
    ]);
    let refusal = plan(Some(&live), &wanted, None, &[], &terms, false).unwrap_err();
    let named: Vec<_> = refusal.faults().map(|fault| fault.field.as_deref().unwrap()).collect();
    assert_eq!(named, ["spec.engine", "spec.map.a"]);
    assert_eq!(refusal.kind, ErrorKind::FieldImmutable);
}

#[test]
fn a_long_value_is_remembered_by_its_hash() {
    let long = json!("x".repeat(600));
    assert!(written(&long)["sha256"].is_string());
    assert_eq!(written(&json!("short")), json!("short"));
}
