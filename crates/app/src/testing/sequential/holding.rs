//! What holds a teardown and is kept outside on purpose, and the report of a deletion.

use std::time::Duration;

use slipway_core::blocker::Deadlines;
use slipway_core::broker::holding::{Holder, Keepable, OutsideObject};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::orphan::{self, Circumstances, KeepOrder};
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::deletion::leak::Leak;
use slipway_core::deletion::report::{Line, MadeKind, Proof, line};
use slipway_core::error::ErrorKind;
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::operations::control::Mode;
use slipway_core::text::Reason;

use crate::broker::port::ResourceKey;
use crate::deletion::port::{LeakFilter, ReportPage, ReportScope};
use crate::ports::store::{Error, Page};
use crate::testing::world::{World, operator, refused};

fn holder(uid: &str) -> Holder {
    Holder {
        object: OutsideObject {
            api_version: "hcloud.crossplane.io/v1".to_owned(),
            kind: "Server".to_owned(),
            plural: "servers".to_owned(),
            namespace: Some("shop".to_owned()),
            name: uid.to_owned(),
            uid: uid.to_owned(),
        },
        owners: "XServer → Server".to_owned(),
        terminating: true,
        finalizers: vec!["finalizer.managedresource.crossplane.io".to_owned()],
        external_name: Some(format!("machine-{uid}")),
        provider_config: None,
        error: None,
        keepable: Keepable::Yes,
    }
}

/// Orphans as if its teardown were overdue.
async fn orphan(
    world: &World,
    attempt: ProvisionedResourceId,
    holders: &[Holder],
    deadlines: Deadlines,
) -> Result<Vec<KeepOrder>, Error> {
    let reason = Reason::parse("its provider is stuck").expect("a reason");
    let circumstances =
        Circumstances { holders: Some(holders), mode: &Mode::Acting, deadlines: &deadlines };
    let mut kept = Vec::new();
    let mut rule = |snapshot: &ResourceSnapshot| {
        let orphaned = orphan::request(snapshot, &reason, circumstances, &operator())?;
        kept = orphaned.kept;
        Ok(orphaned.commit)
    };
    world.store.broker.decide(ResourceKey::Attempt(attempt), &mut rule).await?;
    Ok(kept)
}

const OVERDUE: Deadlines = Deadlines {
    pending: Duration::ZERO,
    provisioning: Duration::ZERO,
    enrolling: Duration::ZERO,
    deregistering: Duration::ZERO,
    deprovisioning: Duration::ZERO,
    first_heartbeat: Duration::ZERO,
};

async fn open_leaks(world: &World, attempt: ProvisionedResourceId) -> Vec<Leak> {
    let filter = LeakFilter { open: Some(true), kind: Some("orphaned_external".to_owned()) };
    let page = Page { after: None, limit: 10_000 };
    let leaks = world.store.deletion.leak_list(&filter, page).await.expect("a list");
    leaks.into_iter().filter(|leak| leak.subject == attempt.into()).collect()
}

async fn report(world: &World, scope: ReportScope, limit: u32) -> Vec<Line> {
    let (mut lines, mut page) = (Vec::new(), Page { after: None, limit });
    loop {
        let found = world.store.deletion.deletion_made(scope, page).await.expect("a page");
        let ReportPage { made, next } = found;
        lines.extend(made.iter().map(line));
        page.after = next;
        if next.is_none() {
            return lines;
        }
    }
}

fn proof(lines: &[Line], kind: MadeKind) -> Vec<Proof> {
    lines.iter().filter(|line| line.kind == kind).map(|line| line.proof).collect()
}

pub(super) async fn what_is_kept_outside_is_recorded_first_and_stays_on_record(world: &World) {
    let (declared, node) = world.ready().await;
    world.delete(declared.resource).await.expect("a deletion");
    let attempt = declared.attempt;
    let early = orphan(world, attempt, &[holder("a")], OVERDUE).await;
    assert_eq!(refused(early), ErrorKind::NotOrphanable, "its node is registered");
    world.leave(node).await.expect("it leaves");
    let claimed = world.claim_now(attempt).await;
    world.tick(claimed).await.expect("a tick");
    let early = orphan(world, attempt, &[holder("a")], Deadlines::default()).await;
    assert_eq!(refused(early), ErrorKind::NotOrphanable, "it is not overdue");
    assert!(open_leaks(world, attempt).await.is_empty(), "a refusal writes nothing");

    // A worker that has the row meanwhile overwrites nothing of it.
    let late = world.claim_now(attempt).await;
    let kept = orphan(world, attempt, &[holder("a")], OVERDUE).await.expect("it is orphaned");
    let unknown = CompositeReport::Unknown { reason: "away".to_owned() };
    world.tick_seeing(late, &unknown).await.expect("a tick");
    let again = orphan(world, attempt, &[holder("a")], OVERDUE).await.expect("it was orphaned");
    assert_eq!(again, kept);
    assert_eq!(world.snapshot(attempt).await.kept, kept);
    let leaks = open_leaks(world, attempt).await;
    assert_eq!(leaks.iter().map(|leak| leak.id).collect::<Vec<_>>(), [kept[0].leak_record_id]);
    assert_eq!(leaks[0].evidence["external_name"], "machine-a");
    let more = [holder("a"), holder("b")];
    let kept = orphan(world, attempt, &more, OVERDUE).await.expect("it is orphaned");
    assert_eq!((kept.len(), open_leaks(world, attempt).await.len()), (2, 2));

    // Its absence is proven, and what is kept outside stays on record.
    world.drive(attempt, Phase::Deleted).await;
    let once = report(world, ReportScope::Resource(declared.resource), 10).await;
    assert_eq!(proof(&once, MadeKind::Attempt), [Proof::NotYet], "absent once");
    let claimed = world.claim_now(attempt).await;
    world.tick_proving(claimed, &CompositeReport::Absent).await.expect("a tick");
    assert!(world.snapshot(attempt).await.attempt.absence_proven_at().is_some());
    assert_eq!(open_leaks(world, attempt).await.len(), 2);

    let lines = report(world, ReportScope::Attempt(attempt), 10).await;
    assert_eq!(proof(&lines, MadeKind::Attempt), [Proof::Gone]);
    assert_eq!(proof(&lines, MadeKind::Leak), [Proof::KeptOnPurpose; 2]);
    let leaks: Vec<_> = kept.iter().map(|kept| kept.leak_record_id.as_uuid()).collect();
    assert_eq!(lines[0].leaks, leaks);
    assert!(lines.iter().all(|line| line.kind != MadeKind::Node), "of the attempt alone");
}

pub(super) async fn a_report_has_everything_once_and_in_one_order(world: &World) {
    let (lost, _) = world.lost().await;
    world.abandon(lost).await.expect("it is abandoned");
    let (declared, _) = world.ready().await;
    let project = world.snapshot(declared.attempt).await.resource.project_id;
    let scope = ReportScope::Project(project);
    let whole = report(world, scope, 100_000).await;
    assert_eq!(report(world, scope, 2).await, whole, "whatever the size of its pages");
    let mut ids: Vec<_> = whole.iter().map(|line| (line.kind.as_str(), line.id)).collect();
    let lines = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), lines, "each once");
    let own = |line: &&Line, id: ProvisionedResourceId| line.id == id.as_uuid();
    let abandoned = whole.iter().find(|line| own(line, lost.attempt)).expect("its line");
    assert_eq!(abandoned.proof, Proof::Abandoned);
    assert_eq!(abandoned.by.as_deref(), Some(operator().name.as_str()));
    let live = whole.iter().find(|line| own(line, declared.attempt)).expect("its line");
    assert_eq!((live.proof, live.how.as_str()), (Proof::NotYet, "it is Ready"));
    let of_live = report(world, ReportScope::Resource(declared.resource), 10).await;
    assert_eq!(proof(&of_live, MadeKind::Node), [Proof::NotYet]);
    assert_eq!(proof(&of_live, MadeKind::Token), [Proof::Gone], "consumed");
    let of_lost = report(world, ReportScope::Resource(lost.resource), 10).await;
    assert_eq!(proof(&of_lost, MadeKind::Leak), [Proof::LeakOpen; 2]);
    let made = world.store.deletion.deletion_placement(project).await.expect("its placement");
    assert_eq!(
        made.iter().map(line).map(|line| line.kind).collect::<Vec<_>>(),
        [MadeKind::Namespace]
    );
    let nobody = ProvisionedResourceId::new(world.uuid());
    assert!(report(world, ReportScope::Attempt(nobody), 10).await.is_empty());
}
