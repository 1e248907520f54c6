//! What a scan finds, in every world of a few attempts; what is removed, and
//! what never is.

use proptest::prelude::*;

use super::*;
use crate::deletion::leak::AbandonedKind;
use crate::fixtures::topology::mk_owner;
use crate::fixtures::{at, mk_actor};
use crate::ids::LeakRecordId;
use crate::topology::role::NodeRole;

const HERE: ClusterId = ClusterId::new(Uuid::from_u128(1));
const ELSEWHERE: ClusterId = ClusterId::new(Uuid::from_u128(2));
const APART: Duration = Duration::from_secs(30);

fn attempt(number: u128) -> ProvisionedResourceId {
    ProvisionedResourceId::new(Uuid::from_u128(100 + number))
}

fn object_ref(name: &str) -> ObjectRef {
    ObjectRef { namespace: "project-1".to_owned(), name: name.to_owned() }
}

fn home(number: u128) -> ObjectRef {
    object_ref(&format!("pr-{number}"))
}

fn mk_object(owner: Option<u128>, object_ref: ObjectRef) -> Found {
    Found {
        uid: format!("uid of {}", object_ref.name),
        object_ref,
        provisioned_resource_id: owner.map(attempt),
        claim_token: None,
        group: None,
        evidence: json!({ "pid": 7 }),
    }
}

fn mk_row(number: u128, phase: Phase) -> Claimant {
    Claimant { id: attempt(number), phase: Some(phase), home: Some((HERE, home(number))) }
}

fn rows(rows: &[Claimant]) -> HashMap<ProvisionedResourceId, Claimant> {
    rows.iter().map(|row| (row.id, row.clone())).collect()
}

fn kinds(findings: &[Finding]) -> Vec<FindingKind> {
    findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn each_object_is_held_against_its_row() {
    let known = rows(&[
        mk_row(1, Phase::Ready),
        mk_row(2, Phase::Deleted),
        Claimant { home: None, ..mk_row(3, Phase::Ready) },
        Claimant { home: Some((ELSEWHERE, home(4))), ..mk_row(4, Phase::Ready) },
        Claimant { phase: None, ..mk_row(5, Phase::Ready) },
        Claimant { home: None, ..mk_row(8, Phase::Deleted) },
    ]);
    let table = [
        (mk_object(Some(1), home(1)), None),
        (mk_object(Some(1), object_ref("copy")), Some(FindingKind::DuplicateObject)),
        (mk_object(Some(2), home(2)), Some(FindingKind::ObjectOfDeleted)),
        (mk_object(Some(2), object_ref("copy")), Some(FindingKind::DuplicateObject)),
        (mk_object(Some(3), home(3)), None),
        (mk_object(Some(4), home(4)), Some(FindingKind::DuplicateObject)),
        (mk_object(Some(5), home(5)), None),
        (mk_object(Some(6), home(6)), Some(FindingKind::UnclaimedObject)),
        (mk_object(None, home(7)), Some(FindingKind::UnclaimedObject)),
        // Its project left the cluster while it was lost; the cluster came back.
        (mk_object(Some(8), home(8)), Some(FindingKind::UnclaimedObject)),
    ];
    for (object, expected) in table {
        let judged = judge_objects(HERE, std::slice::from_ref(&object), &known);
        let found = kinds(&judged.findings);
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{object:?}");
    }
}

#[test]
fn an_object_that_names_no_attempt_is_its_own_subject() {
    let judged = judge_objects(HERE, &[mk_object(None, home(1))], &HashMap::new());
    let [finding] = &judged.findings[..] else { panic!("{judged:?}") };
    assert_eq!(finding.subject, Subject::new(SubjectKind::LeakRecord, finding.key));
}

#[test]
fn what_the_world_says_of_itself_can_be_stored() {
    let mut object = mk_object(None, object_ref("a\0b"));
    object.evidence = json!({ "folder": "x\0" });
    let judged = judge_objects(HERE, &[object], &HashMap::new());
    assert!(!format!("{judged:?}").contains("\\0"), "{judged:?}");
}

fn phases() -> impl Strategy<Value = Phase> {
    proptest::sample::select(Phase::ALL.to_vec())
}

/// Up to eight attempts: the phase of the row if there is one, whether its
/// object exists where it belongs, and whether one exists elsewhere.
fn worlds() -> impl Strategy<Value = Vec<(Option<Phase>, bool, bool)>> {
    let one = (proptest::option::of(phases()), any::<bool>(), any::<bool>());
    proptest::collection::vec(one, 0..8)
}

proptest! {
    /// A scan finds every disagreement once, and nothing else: if rows and
    /// objects agree there is no finding, whatever the phases.
    #[test]
    fn a_scan_finds_exactly_what_disagrees(world in worlds()) {
        let number = |index: usize| u128::try_from(index).unwrap();
        let mut known = Vec::new();
        let mut objects = Vec::new();
        let mut expected = Vec::new();
        for (index, (phase, there, copied)) in world.iter().enumerate() {
            let id = number(index);
            known.extend(phase.map(|phase| mk_row(id, phase)));
            if *there {
                objects.push(mk_object(Some(id), home(id)));
                match phase {
                    None => expected.push((FindingKind::UnclaimedObject, id)),
                    Some(Phase::Deleted) => expected.push((FindingKind::ObjectOfDeleted, id)),
                    Some(_) => {}
                }
            } else if phase.is_some_and(|phase| EXPECTING.contains(&phase)) {
                expected.push((FindingKind::MissingObject, id));
            }
            if *copied {
                objects.push(mk_object(Some(id), object_ref(&format!("copy-{id}"))));
                let kind = match phase {
                    None => FindingKind::UnclaimedObject,
                    Some(_) => FindingKind::DuplicateObject,
                };
                expected.push((kind, id));
            }
        }
        let judged = judge_objects(HERE, &objects, &rows(&known));
        let at_home = judged.at_home.iter().copied().collect();
        let mut findings = judged.findings;
        findings.extend(judge_rows(HERE, &known, &at_home));
        let mut found: Vec<_> = findings
            .iter()
            .map(|finding| (finding.kind, finding.subject.id.as_u128() - 100))
            .collect();
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
        let keys: HashSet<_> = findings.iter().map(|finding| finding.key).collect();
        prop_assert_eq!(keys.len(), findings.len(), "keys tell findings apart");
    }

    /// The findings do not depend on how the objects are cut into pages.
    #[test]
    fn pages_change_nothing(world in worlds(), cut in 1_usize..5) {
        let mut known = Vec::new();
        let mut objects = Vec::new();
        for (index, (phase, there, copied)) in world.iter().enumerate() {
            let id = u128::try_from(index).unwrap();
            known.extend(phase.map(|phase| mk_row(id, phase)));
            objects.extend(there.then(|| mk_object(Some(id), home(id))));
            objects.extend(copied.then(|| mk_object(Some(id), object_ref(&format!("copy-{id}")))));
        }
        let known = rows(&known);
        let whole = judge_objects(HERE, &objects, &known);
        let mut paged = Judged::default();
        for page in objects.chunks(cut) {
            let judged = judge_objects(HERE, page, &known);
            paged.findings.extend(judged.findings);
            paged.at_home.extend(judged.at_home);
        }
        prop_assert_eq!(paged, whole);
    }

    /// A finding counts only after two observations, a lease apart.
    #[test]
    fn nothing_counts_before_a_second_observation(first in 1_i64..1_000, later in -100_i64..100) {
        let counts = is_confirmed(at(first), at(first + later), APART);
        prop_assert_eq!(counts, later >= 30);
    }

    /// An object is never removed that a row claims where it is, or whose kind
    /// of finding is not removable.
    #[test]
    fn only_what_no_row_claims_is_removed(
        kind in proptest::sample::select(FindingKind::ALL.to_vec()),
        phase in proptest::option::of(phases()),
        placed in any::<bool>(),
        same_object in any::<bool>(),
    ) {
        let leak = mk_leak(kind, Some(attempt(1)), if same_object { home(1) } else { object_ref("x") });
        let claimant = phase.map(|phase| {
            let row = mk_row(1, phase);
            Claimant { home: row.home.clone().filter(|_| placed), ..row }
        });
        // A Deleted row whose project left the cluster claims nothing there.
        let claims = |row: &Claimant| {
            if placed { same_object } else { row.phase != Some(Phase::Deleted) }
        };
        let claimed = claimant.as_ref().is_some_and(claims);
        let snapshot = LeakSnapshot { now: at(2_000), leak, claimant, owner: None };
        let removal = request_removal(&snapshot, Role::Operator, &why(), &mk_actor());
        prop_assert_eq!(removal.is_ok(), kind.is_removable() && !claimed);
        if let Ok(commit) = removal {
            let asked = LeakSnapshot { leak: commit.leak, ..snapshot };
            prop_assert!(may_remove(&asked));
        }
    }
}

#[test]
fn the_same_thing_has_the_same_key_and_another_one_another() {
    let find = |cluster, object: Found| {
        judge_objects(cluster, &[object], &HashMap::new()).findings.remove(0).key
    };
    let first = find(HERE, mk_object(Some(1), home(1)));
    assert_eq!(first, find(HERE, mk_object(Some(1), home(1))));
    assert_ne!(first, find(ELSEWHERE, mk_object(Some(1), home(1))));
    let anew = Found { uid: "another".to_owned(), ..mk_object(Some(1), home(1)) };
    assert_ne!(first, find(HERE, anew), "made anew is another thing");
}

fn why() -> Reason {
    Reason::parse("left behind").unwrap()
}

fn mk_leak(kind: FindingKind, owner: Option<ProvisionedResourceId>, object_ref: ObjectRef) -> Leak {
    let key = Uuid::from_u128(5);
    Leak {
        id: LeakRecordId::new(Uuid::from_u128(6)),
        kind: kind.as_str().to_owned(),
        finding: Some(key),
        subject: owner.map_or(Subject::new(SubjectKind::LeakRecord, key), Into::into),
        found_at: at(1_000),
        last_seen_at: Some(at(1_100)),
        cluster_id: Some(HERE),
        cluster: Some("local".to_owned()),
        object_ref: Some(object_ref),
        uid: Some("uid".to_owned()),
        evidence: json!({}),
        removal: None,
        resolved: None,
    }
}

fn mk_snapshot(kind: FindingKind, claimant: Option<Claimant>) -> LeakSnapshot {
    LeakSnapshot {
        now: at(2_000),
        leak: mk_leak(kind, Some(attempt(1)), home(1)),
        claimant,
        owner: None,
    }
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Refusal>) -> ErrorKind {
    outcome.unwrap_err().kind
}

#[test]
fn a_leak_is_resolved_by_hand_only_with_its_object_proven_gone() {
    let snapshot = mk_snapshot(FindingKind::UnclaimedObject, None);
    let ask = |presence: Presence| resolve(&snapshot, &presence, &why(), &mk_actor());
    assert_eq!(refused(ask(Presence::There)), ErrorKind::LeakNotGone);
    assert_eq!(refused(ask(Presence::Unknown("unmounted".to_owned()))), ErrorKind::LeakNotGone);
    let commit = ask(Presence::Gone).unwrap();
    let resolved = commit.leak.resolved.clone().unwrap();
    assert_eq!((resolved.at, resolved.by.as_deref()), (at(2_000), Some("key:test")));
    assert_eq!(commit.audit.verb, "leak.resolve");
    assert_eq!(commit.audit.reason.as_deref(), Some("left behind"));

    let again = LeakSnapshot { leak: commit.leak, ..snapshot.clone() };
    assert_eq!(
        refused(resolve(&again, &Presence::Gone, &why(), &mk_actor())),
        ErrorKind::LeakResolved
    );
    assert_eq!(
        refused(request_removal(&again, Role::Operator, &why(), &mk_actor())),
        ErrorKind::LeakResolved
    );
}

/// What was abandoned may never be read again; what is there is not gone.
#[test]
fn what_was_abandoned_is_resolved_by_a_persons_word() {
    for kind in AbandonedKind::ALL {
        let mut snapshot = mk_snapshot(FindingKind::UnclaimedObject, None);
        snapshot.leak.kind = kind.as_str().to_owned();
        snapshot.leak.finding = None;
        let ask = |presence: Presence| resolve(&snapshot, &presence, &why(), &mk_actor());
        assert!(ask(Presence::Unknown("the cluster is lost".to_owned())).is_ok());
        assert_eq!(refused(ask(Presence::There)), ErrorKind::LeakNotGone);
        assert!(snapshot.leak.remedy().contains("by hand"));
        let removal = request_removal(&snapshot, Role::Operator, &why(), &mk_actor());
        assert_eq!(refused(removal), ErrorKind::LeakNotRemovable);
    }
}

#[test]
fn a_missing_object_is_resolved_when_it_is_back_or_not_wanted() {
    let ask = |phase: Phase, presence: Presence| {
        let snapshot = mk_snapshot(FindingKind::MissingObject, Some(mk_row(1, phase)));
        resolve(&snapshot, &presence, &why(), &mk_actor())
    };
    assert_eq!(refused(ask(Phase::Ready, Presence::Gone)), ErrorKind::LeakNotGone);
    assert!(ask(Phase::Ready, Presence::There).is_ok());
    assert!(ask(Phase::Deleted, Presence::Gone).is_ok());
}

#[test]
fn an_object_that_names_no_attempt_is_not_removed_from_here() {
    let leak = mk_leak(FindingKind::UnclaimedObject, None, home(1));
    let snapshot = LeakSnapshot { now: at(2_000), leak, claimant: None, owner: None };
    assert_eq!(
        refused(request_removal(&snapshot, Role::Operator, &why(), &mk_actor())),
        ErrorKind::LeakNotRemovable
    );
    assert_eq!(snapshot.leak.provisioned_resource_id(), None);
}

#[test]
fn an_end_says_who_asked_for_it() {
    let snapshot = mk_snapshot(FindingKind::UnclaimedObject, None);
    let by_itself = vanished(&snapshot.leak, at(2_100), &mk_actor());
    assert!(by_itself.audit.reason.unwrap().contains("not there any more"));
    let asked = request_removal(&snapshot, Role::Operator, &why(), &mk_actor()).unwrap();
    assert_eq!(asked.audit.verb, "leak.remove");
    let removed = vanished(&asked.leak, at(2_100), &Actor::new("loop:orphans"));
    let resolution = removed.leak.resolved.unwrap().resolution.unwrap();
    assert_eq!(resolution, "removed for key:test: left behind");
}

/// No gate counts what no row has, so an operator does not take it away.
#[test]
fn a_stray_server_of_a_live_group_is_removed_by_an_admin() {
    let owner = Some(mk_owner(NodeRole::ControlPlane));
    let snapshot = LeakSnapshot { owner, ..mk_snapshot(FindingKind::UnclaimedObject, None) };
    let ask = |caller| request_removal(&snapshot, caller, &why(), &mk_actor());
    let refusal = ask(Role::Operator).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::OwnedByWorkspace);
    assert!(refusal.message.contains("ControlPlane"), "{}", refusal.message);
    assert!(ask(Role::Admin).is_ok());
}
