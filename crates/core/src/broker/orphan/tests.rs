//! What is orphaned, what is refused, and what is read back.

use std::time::Duration;

use super::*;
use crate::broker::holding::ProviderError;
use crate::fixtures::{at, mk_actor, mk_node, mk_snapshot};
use crate::operations::control::Freeze;

fn holder(uid: &str, keepable: Keepable) -> Holder {
    Holder {
        object: OutsideObject {
            api_version: "hcloud.crossplane.io/v1".to_owned(),
            kind: "Server".to_owned(),
            plural: "servers".to_owned(),
            namespace: Some("shop".to_owned()),
            name: format!("s-{uid}"),
            uid: uid.to_owned(),
        },
        owners: "XServer shop/pr-1 → Server".to_owned(),
        terminating: true,
        finalizers: vec!["finalizer.managedresource.crossplane.io".to_owned()],
        external_name: Some(format!("ext-{uid}")),
        provider_config: Some("hetzner".to_owned()),
        error: Some(ProviderError {
            reason: Some("ReconcileError".to_owned()),
            message: "server is locked".to_owned(),
            at: None,
        }),
        keepable,
    }
}

fn overdue() -> (ResourceSnapshot, Deadlines) {
    let deadlines = Deadlines { deprovisioning: Duration::ZERO, ..Deadlines::default() };
    (mk_snapshot(Phase::Deprovisioning), deadlines)
}

fn ask(
    snapshot: &ResourceSnapshot,
    deadlines: &Deadlines,
    holders: &[Holder],
) -> Result<Orphaned, Refusal> {
    let circumstances = Circumstances { holders: Some(holders), mode: &Mode::Acting, deadlines };
    request(snapshot, &Reason::parse("locked for ever").unwrap(), circumstances, &mk_actor())
}

fn leaks(commit: &Commit) -> Vec<&LeakRecord> {
    let leak = |write| match write {
        &Write::Deletion(DeletionWrite::LeakInsert(ref leak)) => Some(leak),
        _ => None,
    };
    commit.writes.iter().filter_map(leak).collect()
}

#[test]
fn what_holds_an_overdue_teardown_is_recorded_before_it_is_told() {
    let (snapshot, deadlines) = overdue();
    let holders = [
        Holder { terminating: false, ..holder("young", Keepable::Yes) },
        holder("a", Keepable::Yes),
        holder("b", Keepable::No("it is no managed resource".to_owned())),
        holder("c", Keepable::Already),
    ];
    let Orphaned { kept, commit } = ask(&snapshot, &deadlines, &holders).unwrap();
    let uids: Vec<_> = kept.iter().map(|kept| kept.object.uid.as_str()).collect();
    assert_eq!(uids, ["a"], "only what holds it and can keep its external object");
    let [leak] = leaks(&commit)[..] else { panic!("{commit:?}") };
    assert_eq!((leak.kind, leak.id), ("orphaned_external", kept[0].leak_record_id));
    assert_eq!(leak.evidence["external_name"], "ext-a");
    assert_eq!(leak.evidence["find"], "hcloud server describe ext-a");
    assert_eq!(leak.evidence["provider_error"], "server is locked");
    assert_eq!(commit.audit[0].verb, ORPHAN);
    assert_eq!(commit.wakes, [snapshot.attempt.id().into()]);
    assert!(commit.events.is_empty(), "its phase does not change");

    // Asked again it changes nothing, and adds what holds it since.
    let told = ResourceSnapshot { kept: kept.clone(), ..snapshot };
    let again = ask(&told, &deadlines, &[holder("a", Keepable::Already)]).unwrap();
    assert_eq!(again, Orphaned { kept: kept.clone(), commit: Commit::default() });
    let again = ask(&told, &deadlines, &[holder("a", Keepable::Yes)]).unwrap();
    assert!(again.commit.is_empty(), "not told yet");
    let more = [holder("a", Keepable::Already), holder("d", Keepable::Yes)];
    let more = ask(&told, &deadlines, &more).unwrap();
    assert_eq!((more.kept.len(), leaks(&more.commit).len()), (2, 1));
}

#[test]
fn everything_else_is_refused_with_what_to_do() {
    let (snapshot, deadlines) = overdue();
    let held = [holder("a", Keepable::Yes)];
    let refused = |snapshot: &ResourceSnapshot, deadlines: &Deadlines, holders: &[Holder]| {
        let refusal = ask(snapshot, deadlines, holders).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::NotOrphanable);
        refusal.message
    };
    for phase in [Phase::Ready, Phase::Failed, Phase::Pending] {
        let message = refused(&mk_snapshot(phase), &deadlines, &held);
        assert!(message.contains("slipway resource delete"), "{message}");
    }
    let message = refused(&mk_snapshot(Phase::Deleted), &deadlines, &held);
    assert!(message.contains("gone"), "{message}");
    let early = refused(&snapshot, &Deadlines::default(), &held);
    assert!(early.contains("not overdue"), "{early}");
    let registered = ResourceSnapshot { node: Some(mk_node()), ..snapshot.clone() };
    assert!(refused(&registered, &deadlines, &held).contains("force-drain"));
    assert!(refused(&snapshot, &deadlines, &[]).contains("no managed resource"));
    let stubborn = [holder("a", Keepable::No("it has no managementPolicies".to_owned()))];
    assert!(refused(&snapshot, &deadlines, &stubborn).contains("no managementPolicies"));
    let young = [Holder { terminating: false, ..holder("a", Keepable::Yes) }];
    assert!(refused(&snapshot, &deadlines, &young).contains("no managed resource"));

    let reason = Reason::parse("x").unwrap();
    let unserved = Circumstances { holders: None, mode: &Mode::Acting, deadlines: &deadlines };
    let message = request(&snapshot, &reason, unserved, &mk_actor()).unwrap_err().message;
    assert!(message.contains("does not serve"), "{message}");
    let frozen = Mode::Frozen(Freeze {
        by: "key:test".to_owned(),
        reason: "storm".to_owned(),
        since: at(1),
        until: at(9_999),
    });
    let frozen = Circumstances { holders: Some(&held), mode: &frozen, deadlines: &deadlines };
    let message = request(&snapshot, &reason, frozen, &mk_actor()).unwrap_err().message;
    assert!(message.contains("frozen"), "{message}");
}

#[test]
fn what_is_recorded_is_read_back_as_it_was() {
    let (snapshot, deadlines) = overdue();
    let kept = ask(&snapshot, &deadlines, &[holder("a", Keepable::Yes)]).unwrap().kept;
    let text = serde_json::to_string(&kept).unwrap();
    assert_eq!(serde_json::from_str::<Vec<KeepOrder>>(&text).unwrap(), kept);
}
