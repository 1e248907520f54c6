//! Every rule by example, and properties over random offers and inventories.

use proptest::prelude::*;

use super::super::inventory::tests::mk_reference;
use super::super::inventory::{Reference, Report};
use super::*;

fn mk_object(stack: &str, number: i64) -> DeploymentObject {
    let time = "2026-01-02T03:04:05Z".to_owned();
    DeploymentObject {
        created_at: time.clone(),
        deleted_at: None,
        id: format!("{stack}-{number}"),
        is_deletion_marker: false,
        keep: false,
        per_agent: false,
        sequence_id: number,
        stack_id: stack.to_owned(),
        submitted_at: time.clone(),
        updated_at: time,
        yaml_checksum: format!("sum-{number}"),
        yaml_content: "kind: ConfigMap".to_owned(),
    }
}

fn mk_marker(stack: &str, number: i64) -> DeploymentObject {
    DeploymentObject {
        is_deletion_marker: true,
        yaml_content: String::new(),
        ..mk_object(stack, number)
    }
}

/// A stack whose object of this number is applied, with so many objects.
fn mk_entry(stack: &str, number: i64, objects: usize) -> Entry {
    let mut entry = Entry::new(&format!("{stack}-{number}"), &format!("sum-{number}"));
    let references: Vec<Reference> =
        (0..objects).map(|index| mk_reference(&format!("{stack}-{index}"))).collect();
    entry.intend(&references);
    entry.phase = Phase::Applied;
    entry
}

fn mk_inventory(stacks: &[(&str, usize)]) -> Inventory {
    stacks.iter().map(|(stack, size)| ((*stack).to_owned(), mk_entry(stack, 1, *size))).collect()
}

fn proof(offered: &[DeploymentObject]) -> Evidence {
    let mut evidence = Evidence::default();
    evidence.answered(offered);
    evidence.unchanged();
    evidence
}

fn plan<'a>(offered: &'a [DeploymentObject], inventory: &Inventory) -> Plan<'a> {
    decide(offered, inventory, &proof(offered), &BTreeSet::new())
}

#[test]
fn what_is_new_is_applied_and_what_is_applied_is_left_alone() {
    let offered = [mk_object("a", 1), mk_object("b", 2), mk_object("c", 1)];
    let mut inventory = mk_inventory(&[("a", 1), ("b", 1)]);
    let ids = |plan: &Plan<'_>| -> Vec<String> {
        let applied = plan.actions.iter().map(|action| match action {
            Action::Apply { object } => object.id.clone(),
            other => panic!("{other:?}"),
        });
        applied.collect()
    };
    assert_eq!(ids(&plan(&offered, &inventory)), ["b-2", "c-1"]);
    // Broken off in the middle: again.
    inventory.get_mut("a").unwrap().phase = Phase::Applying;
    assert_eq!(ids(&plan(&offered, &inventory)), ["a-1", "b-2", "c-1"]);
}

#[test]
fn the_newest_object_of_a_stack_counts() {
    let offered = [mk_marker("a", 2), mk_object("a", 3), mk_object("a", 1)];
    let plan = plan(&offered, &Inventory::new());
    assert_eq!(plan.actions, [Action::Apply { object: &offered[1] }]);
}

#[test]
fn a_marker_is_carried_out_once_and_forgotten_when_nobody_offers_it() {
    let offered = [mk_marker("a", 2)];
    let mut inventory = mk_inventory(&[("a", 100)]);
    // However much it removes, and at the first answer: it is an order.
    let first = decide(&offered, &inventory, &Evidence::default(), &BTreeSet::new());
    assert_eq!(first.actions, [Action::Remove { marker: &offered[0] }]);
    inventory.insert(
        "a".to_owned(),
        Entry { phase: Phase::Gone, event: Event::Delete, ..mk_entry("a", 2, 0) },
    );
    assert_eq!(plan(&offered, &inventory), Plan::default());
    assert_eq!(plan(&[], &inventory).actions, [Action::Forget { stack: "a".to_owned() }]);
    // Restored: content supersedes what is gone.
    let again = [mk_object("a", 3)];
    assert_eq!(plan(&again, &inventory).actions, [Action::Apply { object: &again[0] }]);
}

#[test]
fn a_marker_for_a_stack_that_nobody_knows_is_answered() {
    let offered = [mk_marker("a", 2)];
    let plan = plan(&offered, &Inventory::new());
    assert_eq!(plan.actions, [Action::Remove { marker: &offered[0] }]);
}

#[test]
fn what_is_kept_is_never_deleted() {
    let kept = [DeploymentObject { keep: true, ..mk_marker("a", 2) }];
    let release = Action::Release { stack: "a".to_owned(), object_id: "a-2".to_owned() };
    let mut inventory = mk_inventory(&[("a", 100)]);
    assert_eq!(plan(&kept, &inventory).actions, std::slice::from_ref(&release));
    // Broken off, and then the marker is absent.
    let entry = inventory.get_mut("a").unwrap();
    entry.phase = Phase::Releasing;
    entry.object_id = "a-2".to_owned();
    assert_eq!(plan(&[], &inventory).actions, [release]);
}

#[test]
fn what_contradicts_itself_is_refused_and_removes_nothing() {
    let inventory = mk_inventory(&[("a", 1)]);
    for object in [
        DeploymentObject { yaml_content: "kind: A".to_owned(), ..mk_marker("a", 2) },
        DeploymentObject { yaml_content: " \n".to_owned(), ..mk_object("a", 2) },
        DeploymentObject { keep: true, ..mk_object("a", 2) },
    ] {
        let offered = [object];
        let plan = plan(&offered, &inventory);
        assert!(matches!(&plan.actions[..], [Action::Refuse { .. }]), "{plan:?}");
    }
}

#[test]
fn an_absence_counts_in_the_second_equal_answer_only() {
    let inventory = mk_inventory(&[("a", 1), ("b", 99)]);
    let offered = [mk_object("b", 1)];
    let pruned = [Action::Prune { stack: "a".to_owned() }];
    let mut evidence = Evidence::default();
    let mut at = |learn: &dyn Fn(&mut Evidence)| {
        learn(&mut evidence);
        let plan = decide(&offered, &inventory, &evidence, &BTreeSet::new());
        assert_eq!(plan.is_unproven, plan.actions.is_empty());
        plan.actions == pruned
    };
    assert!(!at(&|_| ()), "nothing was answered");
    assert!(!at(&|evidence| evidence.unchanged()), "nothing that could be unchanged");
    assert!(!at(&|evidence| evidence.answered(&[mk_object("b", 1)])));
    assert!(at(&|evidence| evidence.answered(&[mk_object("b", 1)])));
    assert!(!at(&|evidence| evidence.failed()));
    assert!(!at(&|evidence| evidence.answered(&[])), "an empty answer after an error");
    assert!(!at(&|evidence| evidence.answered(&[mk_object("b", 1)])), "another answer");
    assert!(at(&|evidence| evidence.unchanged()));
}

#[test]
fn a_large_prune_waits_for_its_digest() {
    for (absent, others, is_refused) in
        [(50, 1_000, false), (51, 1_000, true), (20, 80, false), (21, 79, true), (1, 1, true)]
    {
        let inventory = mk_inventory(&[("a", absent), ("b", others)]);
        let offered = [mk_object("b", 1)];
        let plan = plan(&offered, &inventory);
        assert_eq!(plan.refusal.is_some(), is_refused, "{absent} of {}", absent + others);
        assert_eq!(plan.actions.is_empty(), is_refused);
        let Some(refusal) = plan.refusal else { continue };
        assert_eq!(refusal.objects, i64::try_from(absent).unwrap());
        assert_eq!(refusal.total, i64::try_from(absent + others).unwrap());
        assert_eq!(refusal.stacks, ["a"]);
        let confirmed = BTreeSet::from([refusal.digest]);
        let plan = decide(&offered, &inventory, &proof(&offered), &confirmed);
        assert_eq!(plan.actions, [Action::Prune { stack: "a".to_owned() }]);
        // One object more is another digest.
        let more = mk_inventory(&[("a", absent + 1), ("b", others)]);
        let plan = decide(&offered, &more, &proof(&offered), &confirmed);
        assert!(plan.actions.is_empty() && plan.refusal.is_some());
    }
}

#[test]
fn a_prune_is_forgotten_after_it_was_reported() {
    let mut gone = Entry { phase: Phase::Gone, event: Event::Prune, ..mk_entry("a", 1, 0) };
    gone.say(Report {
        object_id: "a-1".to_owned(),
        event: Event::Prune,
        is_success: true,
        message: None,
    });
    let mut inventory = Inventory::from([("a".to_owned(), gone)]);
    assert_eq!(plan(&[], &inventory), Plan::default());
    inventory.get_mut("a").unwrap().said();
    assert_eq!(plan(&[], &inventory).actions, [Action::Forget { stack: "a".to_owned() }]);
}

#[test]
fn what_leaves_goes_first() {
    let offered = [mk_object("a", 2), mk_marker("b", 2)];
    let plan = plan(&offered, &mk_inventory(&[("a", 1), ("b", 1)]));
    assert!(matches!(&plan.actions[..], [Action::Remove { .. }, Action::Apply { .. }]), "{plan:?}");
}

fn any_phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        Just(Phase::Applying),
        Just(Phase::Applied),
        Just(Phase::Removing),
        Just(Phase::Releasing),
        Just(Phase::Gone),
    ]
}

prop_compose! {
    fn any_entry(stack: &'static str)(
        number in 1_i64..4, objects in 0_usize..60, phase in any_phase(), stale in 0_usize..3,
    ) -> Entry {
        let mut entry = mk_entry(stack, number, objects);
        entry.phase = phase;
        if phase == Phase::Gone {
            entry.references.clear();
        }
        entry.references.iter_mut().take(stale).for_each(|reference| reference.is_stale = true);
        entry
    }
}

prop_compose! {
    fn any_object(stack: &'static str)(
        number in 1_i64..4, is_marker: bool, keep: bool, content in "(kind: A)?",
    ) -> DeploymentObject {
        DeploymentObject {
            is_deletion_marker: is_marker, keep, yaml_content: content, ..mk_object(stack, number)
        }
    }
}

const STACKS: [&str; 4] = ["a", "b", "c", "d"];

fn any_inventory() -> impl Strategy<Value = Inventory> {
    STACKS.map(|stack| proptest::option::of(any_entry(stack))).prop_map(|entries| {
        let named = STACKS.iter().zip(entries);
        named.filter_map(|(stack, entry)| Some(((*stack).to_owned(), entry?))).collect()
    })
}

fn any_offer() -> impl Strategy<Value = Vec<DeploymentObject>> {
    STACKS
        .map(|stack| proptest::option::of(any_object(stack)))
        .prop_map(|objects| objects.into_iter().flatten().collect())
}

fn any_evidence() -> impl Strategy<Value = u32> {
    0_u32..4
}

/// What an executor that succeeds leaves behind.
fn carried_out(action: &Action<'_>, inventory: &mut Inventory) {
    let gone = |entry: &mut Entry, id: &str, event| {
        entry.references.clear();
        (entry.phase, entry.event, entry.object_id) = (Phase::Gone, event, id.to_owned());
    };
    match action {
        Action::Release { stack, object_id } => {
            let entry = inventory.entry(stack.clone()).or_insert_with(|| Entry::new("", ""));
            gone(entry, object_id, Event::Keep);
        }
        Action::Remove { marker } => {
            let entry =
                inventory.entry(marker.stack_id.clone()).or_insert_with(|| Entry::new("", ""));
            gone(entry, &marker.id, Event::Delete);
        }
        Action::Refuse { .. } => {}
        Action::Apply { object } => {
            let entry = mk_entry(&object.stack_id, object.sequence_id, 3);
            inventory.insert(object.stack_id.clone(), entry);
        }
        Action::Sweep { stack } => {
            inventory.get_mut(stack).unwrap().references.retain(|one| !one.is_stale);
        }
        Action::Prune { stack } => gone(inventory.get_mut(stack).unwrap(), "", Event::Prune),
        Action::Forget { stack } => {
            inventory.remove(stack);
        }
    }
}

proptest! {
    #[test]
    fn no_answer_removes_what_it_offers_or_more_than_it_may(
        offered in any_offer(), inventory in any_inventory(), answers in any_evidence(),
    ) {
        let mut evidence = Evidence::default();
        (0..answers).for_each(|_| evidence.answered(&offered));
        let plan = decide(&offered, &inventory, &evidence, &BTreeSet::new());
        let of = |stack: &str| offered.iter().find(|object| object.stack_id == stack);
        let mut removed = 0;
        for action in &plan.actions {
            match action {
                Action::Remove { marker } => {
                    prop_assert!(marker.is_deletion_marker && !marker.keep);
                    prop_assert!(marker.yaml_content.is_empty());
                }
                Action::Prune { stack } => {
                    prop_assert!(answers >= 2 && of(stack).is_none());
                    let entry = &inventory[stack];
                    prop_assert!(entry.phase != Phase::Releasing);
                    removed += entry.references.len();
                }
                Action::Release { stack, .. } => {
                    let is_asked = of(stack).is_some_and(|object| object.keep);
                    prop_assert!(is_asked || inventory[stack].phase == Phase::Releasing);
                }
                Action::Forget { stack } => {
                    prop_assert!(of(stack).is_none() && inventory[stack].references.is_empty());
                }
                Action::Apply { object } => prop_assert!(!object.is_deletion_marker),
                Action::Refuse { .. } | Action::Sweep { .. } => {}
            }
        }
        prop_assert!(removed <= MOST_OBJECTS);
        prop_assert!(removed * 100 <= count(&inventory) * MOST_PERCENT);
        prop_assert!(plan.refusal.is_none() || removed == 0, "all of a prune or nothing");
    }

    #[test]
    fn carried_out_and_decided_again_nothing_is_left_to_do(
        offered in any_offer(), mut inventory in any_inventory(),
    ) {
        let evidence = proof(&offered);
        for _ in 0..3 {
            let confirmed: BTreeSet<String> = decide(&offered, &inventory, &evidence, &BTreeSet::new())
                .refusal.into_iter().map(|refusal| refusal.digest).collect();
            let actions = decide(&offered, &inventory, &evidence, &confirmed).actions;
            let actions: Vec<_> =
                actions.into_iter().filter(|action| !matches!(action, Action::Refuse { .. })).collect();
            if actions.is_empty() {
                break;
            }
            actions.iter().for_each(|action| carried_out(action, &mut inventory));
        }
        let plan = decide(&offered, &inventory, &evidence, &BTreeSet::new());
        prop_assert!(plan.refusal.is_none() && !plan.is_unproven);
        let is_refused = |action: &Action<'_>| matches!(action, Action::Refuse { .. });
        prop_assert!(plan.actions.iter().all(is_refused), "{:?}", plan.actions);
        for (stack, entry) in &inventory {
            let object = offered.iter().find(|object| object.stack_id == *stack);
            let Some(object) = object else { prop_assert!(false, "{stack} is held and not offered"); continue };
            if !object.is_deletion_marker && !object.keep && !object.yaml_content.is_empty() {
                prop_assert_eq!(entry.phase, Phase::Applied);
            }
        }
    }
}
