//! The scenarios: the preparation, the part with faults, and the expected end.

use futures::FutureExt;
use slipway_app::broker::{delete, update};
use slipway_app::deletion::request::DeleteOptions;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::{DeletionId, ProvisionedResourceId, ResourceId};
use slipway_core::precondition::Expected;

use super::applying;
use super::deleting;
use super::delivering;
use super::plane::Plane;
use super::raw::Raw;
use super::{rolling, surging, workspaces};
use crate::simulated::{Behaviour, Performed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenario {
    Provisioning,
    Enrolment,
    Teardown,
    Force,
    MadeAnew,
    EnrolledAgain,
    DeletedBetweenTicks,
    DeletedInsideATick,
    FailedAndDeleted,
    FailedAndRetried,
    Updated,
    UpdatedInsideATick,
    Replaced,
    Surged,
    SurgeAborted,
    RolledOut,
    Applied,
    Restored,
    Cancelled,
    Purged,
    Approved,
    Delivered,
    LateApply,
    TwoAtOnce,
    WorkspaceApplied,
    ServerScaledDown,
    GroupShrunk,
    ServerReplaced,
    ControlPlaneSurged,
    WorkspaceTornDown,
}

/// One attempt of a run, and its expected end, whatever struck.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filling {
    pub(super) resource: ResourceId,
    pub(super) attempt: ProvisionedResourceId,
    pub(super) phase: Phase,
    pub(super) events: &'static [&'static str],
    /// Another attempt followed it.
    pub(super) followed: bool,
    /// What takes it down, if anything does: the audit verb.
    pub(super) order: &'static str,
    /// Whether its composite appeared again after it was Deleted.
    pub(super) leaked: bool,
    /// The deletion that was purged, after which no row of it is left.
    pub(super) purged: Option<DeletionId>,
    /// How often somebody approved its deletion.
    pub(super) approvals: usize,
    /// It was made while another one was in use.
    pub(super) beside: bool,
}

pub(super) const CAME: &[&str] = &["Requested", "Ready"];
pub(super) const CAME_AND_WENT: &[&str] = &["Requested", "Ready", "Deleting", "Deleted"];
const CAME_AND_CHANGED: &[&str] = &["Requested", "Ready", "Updated"];
pub(super) const CHANGED_AND_CAME: &[&str] = &["Requested", "Updated", "Ready"];
const CAME_TWICE: &[&str] = &["Requested", "Ready", "Ready"];
pub(super) const NEVER_CAME: &[&str] = &["Requested", "Deleting", "Deleted"];
const FAILED_AND_WENT: &[&str] = &["Requested", "Failed", "Deleting", "Deleted"];

impl Scenario {
    pub(super) const ALL: [Self; 30] = [
        // The longest runs begin first.
        Self::WorkspaceTornDown,
        Self::WorkspaceApplied,
        Self::GroupShrunk,
        Self::ServerScaledDown,
        Self::ControlPlaneSurged,
        Self::ServerReplaced,
        Self::Provisioning,
        Self::Enrolment,
        Self::Teardown,
        Self::Force,
        Self::MadeAnew,
        Self::EnrolledAgain,
        Self::DeletedBetweenTicks,
        Self::DeletedInsideATick,
        Self::FailedAndDeleted,
        Self::FailedAndRetried,
        Self::Updated,
        Self::UpdatedInsideATick,
        Self::Replaced,
        Self::Surged,
        Self::SurgeAborted,
        Self::RolledOut,
        Self::Applied,
        Self::Restored,
        Self::Cancelled,
        Self::Purged,
        Self::Approved,
        Self::Delivered,
        Self::LateApply,
        Self::TwoAtOnce,
    ];

    /// Timing decides how several rows split into batches, so only the first
    /// passage of each name in the first life is reliable.
    pub(super) fn is_steady(self) -> bool {
        self != Self::TwoAtOnce && !self.has_workspace()
    }

    /// Whether a run that passed this point always does. How often a server that waits for
    /// another one is observed meanwhile, which changes nothing, is a matter of timing.
    pub(super) fn always_passes(self, name: &str) -> bool {
        !(self.has_workspace() && name.starts_with("commit:release/"))
    }

    /// Whether faults other than a crash strike here, too. What the loop over resources does
    /// fails in the scenarios of one resource; what the loops over workspaces and deletions do
    /// about servers, and what people ask for, fails in those of workspaces.
    pub(super) fn fails_at(self, name: &str) -> bool {
        const ABOUT: [&str; 6] = [
            "workspace",
            "resource.declare",
            "resource.delete",
            "resource.replace",
            "wake",
            "deletion.done/",
        ];
        !self.has_workspace() || ABOUT.iter().any(|about| name.contains(about))
    }

    fn has_workspace(self) -> bool {
        matches!(
            self,
            Self::WorkspaceApplied
                | Self::ServerScaledDown
                | Self::GroupShrunk
                | Self::ServerReplaced
                | Self::ControlPlaneSurged
                | Self::WorkspaceTornDown
        )
    }

    /// A few points that the generator must find. Not the list of points: it
    /// detects a generator that misses some.
    pub(super) fn passes(self) -> &'static [&'static str] {
        match self {
            Self::Provisioning => &[
                "commit:resource.declare/after",
                "commit:token.mint/after",
                "action:create/after",
                "action:update/before",
                "commit:Provisioning→Enrolling/before",
                "commit:Enrolling→Ready/after",
            ],
            Self::Enrolment => &["commit:node.enrol/after", "commit:node.enrol_again/before"],
            Self::Teardown => &[
                "commit:Ready→Deregistering+resource.delete/after",
                "commit:node.drain/after",
                "commit:node.deregister/after",
                "action:delete/after",
                "commit:Deprovisioning→Deleted+deletion.done/after",
                "commit:provisioned_resource.absence_proven/after",
            ],
            Self::Force => &["commit:node.deregister/before", "action:delete/before"],
            Self::MadeAnew => &["commit:node.deregister+token.mint/after", "action:create/before"],
            Self::EnrolledAgain => &[
                "commit:token.issue+resource.reenrol+node.deregister/before",
                "commit:token.issue+resource.reenrol+node.deregister/after",
                "commit:node.enrol/after",
                "commit:Enrolling→Ready/after",
            ],
            Self::DeletedBetweenTicks => &["action:delete/after"],
            Self::DeletedInsideATick => &["action:create/after", "action:delete/after"],
            Self::FailedAndDeleted => &[
                "commit:Enrolling→Failed/after",
                "commit:Failed→Deregistering+resource.delete/before",
                "action:delete/before",
            ],
            Self::FailedAndRetried => &[
                "commit:Failed→Deregistering+resource.retry/after",
                "commit:Deprovisioning→Deleted+deletion.done+provisioned_resource.follow/before",
                "action:create/after",
                "commit:Enrolling→Ready/after",
                "commit:provisioned_resource.absence_proven/before",
            ],
            Self::Updated => &[
                "commit:resource.update/before",
                "commit:resource.update/after",
                "action:update/after",
            ],
            Self::UpdatedInsideATick => &["action:create/after", "action:update/before"],
            Self::Replaced => &[
                "commit:Ready→Deregistering+resource.replace/after",
                "commit:node.drain/after",
                "commit:Deprovisioning→Deleted+deletion.done+provisioned_resource.follow/after",
                "action:create/before",
            ],
            Self::Surged => &[
                "commit:resource.replace/before",
                "commit:resource.replace/after",
                "commit:Enrolling→Ready+Ready→Deregistering+deletion.start/before",
                "commit:Enrolling→Ready+Ready→Deregistering+deletion.start/after",
                "commit:node.drain/after",
                "commit:Deprovisioning→Deleted+deletion.done/after",
            ],
            Self::SurgeAborted => &[
                "commit:Enrolling→Deregistering+resource.replace/before",
                "commit:Enrolling→Deregistering+resource.replace/after",
                "commit:Deprovisioning→Deleted+deletion.done/before",
            ],
            Self::Restored => &[
                "commit:provisioned_resource.follow+deletion.restore/before",
                "commit:provisioned_resource.follow+deletion.restore/after",
            ],
            Self::RolledOut => &[
                "commit:rollout.start/after",
                "commit:resource.update/before",
                "commit:resource.update/after",
                "commit:rollout.end/before",
                "commit:rollout.end/after",
            ],
            Self::Applied => &[
                "commit:label/before",
                "commit:cloud/after",
                "commit:project/after",
                "commit:declarations/before",
                "commit:declarations/after",
                "commit:resource.update/after",
                "commit:Pending→Deregistering+resource.delete/before",
            ],
            Self::Cancelled => &["commit:deletion.cancel/before", "commit:deletion.cancel/after"],
            Self::Purged => &[
                "commit:deletion.purge/before",
                "commit:purge batch/before",
                "commit:purge batch/after",
                "commit:deletion.purged/before",
                "commit:deletion.purged/after",
            ],
            Self::Approved => &[
                "commit:plan/after",
                "commit:plan.approve/before",
                "commit:plan.approve/after",
                "commit:Enrolling→Deregistering+resource.delete/after",
            ],
            Self::Delivered => &[
                "commit:stack.submit/before",
                "commit:stack.submit/after",
                "commit:offer/before",
                "commit:offer/after",
                "commit:report/after",
                "commit:stack/after",
                "commit:generator/before",
                "commit:generator/after",
            ],
            Self::LateApply => &[
                "commit:provisioned_resource.leak_found/after",
                "action:delete/before",
                "action:delete/after",
                "commit:provisioned_resource.absence_proven/before",
            ],
            Self::TwoAtOnce => {
                &["action:create/after", "commit:Enrolling→Ready/after", "action:delete/after"]
            }
            Self::WorkspaceApplied
            | Self::ServerScaledDown
            | Self::GroupShrunk
            | Self::ServerReplaced
            | Self::ControlPlaneSurged
            | Self::WorkspaceTornDown => workspaces::passes(self),
        }
    }

    /// The end of a lease concerns one row at a time, and only what a loop has claimed.
    pub(super) fn has_takeover(self) -> bool {
        let rows = matches!(
            self,
            Self::TwoAtOnce
                | Self::Applied
                | Self::Restored
                | Self::Cancelled
                | Self::Purged
                | Self::Approved
                | Self::Delivered
        );
        !rows && !self.has_workspace()
    }

    /// Performs the scenario.
    pub(super) async fn play(self, plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
        let slow = self == Self::Provisioning;
        let substrate = &plane.world.substrate;
        substrate.behave(Behaviour { comes_up: !slow, ..Behaviour::default() });
        let (ids, phase, events) = match self {
            Self::Provisioning => (vec![provisioning(plane, handle).await], Phase::Ready, CAME),
            Self::Enrolment => (vec![enrolment(plane, handle).await], Phase::Ready, CAME),
            Self::Teardown => (vec![teardown(plane, handle).await], Phase::Deleted, CAME_AND_WENT),
            Self::Force => (vec![force(plane, handle).await], Phase::Deleted, CAME_AND_WENT),
            Self::MadeAnew => (vec![made_anew(plane, handle).await], Phase::Ready, CAME_TWICE),
            Self::EnrolledAgain => {
                (vec![enrolled_again(plane, handle).await], Phase::Ready, CAME_TWICE)
            }
            Self::DeletedBetweenTicks => {
                (vec![deleted_between_ticks(plane, handle).await], Phase::Deleted, NEVER_CAME)
            }
            Self::DeletedInsideATick => {
                (vec![deleted_inside_a_tick(plane, handle).await], Phase::Deleted, NEVER_CAME)
            }
            Self::FailedAndDeleted => {
                (vec![failed_and_deleted(plane, handle).await], Phase::Deleted, FAILED_AND_WENT)
            }
            Self::LateApply => {
                (vec![late_apply(plane, handle).await], Phase::Deleted, CAME_AND_WENT)
            }
            Self::RolledOut => {
                (vec![rolling::rolled_out(plane, handle).await], Phase::Ready, CAME_AND_CHANGED)
            }
            Self::Updated => (vec![updated(plane, handle).await], Phase::Ready, CAME_AND_CHANGED),
            Self::UpdatedInsideATick => {
                (vec![updated_inside_a_tick(plane, handle).await], Phase::Ready, CHANGED_AND_CAME)
            }
            Self::FailedAndRetried => return failed_and_retried(plane, handle).await,
            Self::Replaced => return replaced(plane, handle).await,
            Self::Surged => return surging::surged(plane, handle).await,
            Self::SurgeAborted => return surging::aborted(plane, handle).await,
            Self::Restored => return restored(plane, handle).await,
            Self::Applied => return applying::applied(plane, handle).await,
            Self::Cancelled => return deleting::cancelled(plane, handle).await,
            Self::Purged => return deleting::purged(plane, handle).await,
            Self::Approved => return deleting::approved(plane, handle).await,
            Self::Delivered => return delivering::delivered(plane, handle).await,
            Self::TwoAtOnce => (two_at_once(plane, handle).await, Phase::Deleted, CAME_AND_WENT),
            Self::WorkspaceApplied => return workspaces::applied(plane, handle).await,
            Self::ServerScaledDown => return workspaces::scaled_down(plane, handle).await,
            Self::GroupShrunk => return workspaces::shrunk(plane, handle).await,
            Self::ServerReplaced => return workspaces::replaced(plane, handle).await,
            Self::ControlPlaneSurged => return workspaces::surged(plane, handle).await,
            Self::WorkspaceTornDown => return workspaces::torn_down(plane, handle).await,
        };
        let mut fillings = Vec::new();
        for resource in ids {
            let attempt = plane.world.get(resource).await.attempt.id();
            let leaked = self == Self::LateApply;
            let followed = false;
            let gone = filling(resource, attempt, "resource.delete");
            fillings.push(Filling { phase, events, followed, leaked, ..gone });
        }
        fillings
    }
}

/// Brings a resource to Ready, with a heartbeat of its agent.
pub(super) async fn ready(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    let id = plane.declare(handle).await;
    plane.until_phase(id, Phase::Enrolling).await;
    let node = plane.enrol(id, 1).await;
    plane.heartbeat(node).await;
    plane.until_phase(id, Phase::Ready).await;
    id
}

async fn provisioning(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    plane.arm();
    let id = plane.declare(handle).await;
    plane.until_phase(id, Phase::Provisioning).await;
    let name = plane.world.name(id).await;
    let substrate = &plane.world.substrate;
    // The create itself shows that the object exists; while it comes up it is
    // applied again.
    plane
        .until(id, "an update", |_| substrate.performed(&name).contains(&Performed::Updated))
        .await;
    substrate.change(&name, |object| object.ready = true);
    plane.until_phase(id, Phase::Enrolling).await;
    plane.enrol(id, 1).await;
    plane.until_phase(id, Phase::Ready).await;
    id
}

/// The agent's first answer is always lost; it retries with the same key.
async fn enrolment(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    let id = plane.declare(handle).await;
    plane.until_phase(id, Phase::Enrolling).await;
    plane.arm();
    let lost = plane.enrol(id, 1).await;
    let node = plane.enrol(id, 1).await;
    assert_eq!(node, lost, "the same node is answered again");
    plane.heartbeat(node).await;
    plane.until_phase(id, Phase::Ready).await;
    id
}

async fn teardown(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    let id = ready(plane, handle).await;
    plane.arm();
    plane.delete(id).await;
    plane.acknowledge(id).await;
    plane.until_gone(id).await;
    id
}

async fn force(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    let id = ready(plane, handle).await;
    plane.delete(id).await;
    plane.until_draining(id).await;
    plane.arm();
    plane.force(id).await;
    plane.until_gone_in_peace(id).await;
    id
}

async fn made_anew(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    let id = ready(plane, handle).await;
    plane.arm();
    plane.world.substrate.remove(&plane.world.name(id).await);
    plane.until_phase(id, Phase::Enrolling).await;
    plane.enrol(id, 2).await;
    plane.until_phase(id, Phase::Ready).await;
    id
}

/// The machine lost its identity before its first heartbeat.
async fn enrolled_again(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    let id = plane.declare(handle).await;
    plane.until_phase(id, Phase::Enrolling).await;
    plane.enrol(id, 1).await;
    plane.until_phase(id, Phase::Ready).await;
    plane.arm();
    let token = plane.reenrol(id).await;
    plane.until_phase(id, Phase::Enrolling).await;
    plane.enrol_with(id, 2, &token).await;
    plane.until_phase(id, Phase::Ready).await;
    id
}

async fn deleted_between_ticks(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    let id = plane.declare(handle).await;
    let world = plane.world;
    let name = world.name(id).await;
    let exists = |_: &ResourceSnapshot| world.substrate.object(&name).is_some();
    plane.until(id, "an object", exists).await;
    plane.arm();
    plane.delete(id).await;
    plane.until_gone_in_peace(id).await;
    id
}

/// The request arrives after the decision to make the object and before it exists.
async fn deleted_inside_a_tick(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    plane.arm();
    let id = plane.declare(handle).await;
    let (context, caller) = (plane.world.context.clone(), plane.world.caller.clone());
    let request = async move {
        delete::delete(&context, &caller, id, DeleteOptions::default()).await.unwrap();
    };
    plane.interference.set(request.boxed());
    plane.until_gone_in_peace(id).await;
    id
}

async fn failed(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    let id = plane.declare(handle).await;
    plane.until_phase(id, Phase::Enrolling).await;
    plane.arm();
    let name = plane.world.name(id).await;
    plane.world.substrate.change(&name, |object| object.failure = Some("quota".to_owned()));
    plane.until_phase(id, Phase::Failed).await;
    id
}

async fn failed_and_deleted(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    let id = failed(plane, handle).await;
    plane.delete(id).await;
    plane.until_gone_in_peace(id).await;
    id
}

/// The absence of the old attempt is proven when the new one is settled; left
/// to timing, that moment would vary between runs.
async fn failed_and_retried(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    plane.prove_when_told();
    let resource = failed(plane, handle).await;
    let first = plane.world.get(resource).await.attempt.id();
    plane.retry(resource).await;
    let waits = |seen: &ResourceSnapshot| {
        seen.attempt.attempt() == 2 && seen.attempt.phase() == Phase::Enrolling
    };
    plane.until(resource, "the second attempt to wait for its node", waits).await;
    plane.enrol(resource, 1).await;
    let ready = plane.until_phase(resource, Phase::Ready).await.attempt;
    assert_eq!(ready.parameter_values().as_map()["busy_seconds"], 1, "the corrected value");
    let second = ready.id();
    Raw::open(&plane.world.url).await.age(first).await;
    plane.until_proven(first).await;
    let gone = filling(resource, first, "resource.retry");
    vec![
        Filling { events: FAILED_AND_WENT, ..gone },
        Filling {
            phase: Phase::Ready,
            events: CAME,
            followed: false,
            ..filling(resource, second, "resource.delete")
        },
    ]
}

/// Whatever struck, the object ends with what was declared last.
async fn updated(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    let id = ready(plane, handle).await;
    let name = plane.world.name(id).await;
    plane.arm();
    plane.update(id).await;
    let has_it = |seen: &ResourceSnapshot| seen.update_pending_since().is_none();
    let seen = plane.until(id, "the update to reach the substrate", has_it).await;
    assert_eq!(seen.attempt.parameter_values().as_map()["size"], 4);
    let object = plane.world.substrate.object(&name).unwrap().object;
    assert_eq!(object["spec"]["parameters"]["size"], 4);
    id
}

/// The update arrives after the decision to make the object and before it exists. What the
/// tick makes then is of the older declaration, and its record says nothing of the new one.
async fn updated_inside_a_tick(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    plane.arm();
    let id = plane.declare(handle).await;
    let (context, caller) = (plane.world.context.clone(), plane.world.caller.clone());
    let request = async move {
        update::update(&context, &caller, id, Plane::changes(), Expected::Any).await.unwrap();
    };
    plane.interference.set(request.boxed());
    let has_it = |seen: &ResourceSnapshot| {
        seen.attempt.phase() == Phase::Enrolling
            && seen.attempt.parameter_values().as_map().contains_key("size")
            && seen.update_pending_since().is_none()
    };
    plane.until(id, "the update to reach the substrate", has_it).await;
    plane.disarm();
    let name = plane.world.name(id).await;
    let object = plane.world.substrate.object(&name).unwrap().object;
    assert_eq!(object["spec"]["parameters"]["size"], 4);
    plane.enrol(id, 1).await;
    plane.until_phase(id, Phase::Ready).await;
    id
}

async fn replaced(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    plane.prove_when_told();
    let resource = ready(plane, handle).await;
    let first = plane.world.get(resource).await.attempt.id();
    plane.arm();
    plane.replace(resource).await;
    plane.acknowledge(resource).await;
    let waits = |seen: &ResourceSnapshot| {
        seen.attempt.attempt() == 2 && seen.attempt.phase() == Phase::Enrolling
    };
    plane.until(resource, "the second attempt to wait for its node", waits).await;
    // What becomes of it, other scenarios show.
    plane.disarm();
    plane.enrol(resource, 2).await;
    let ready = plane.until_phase(resource, Phase::Ready).await.attempt;
    assert_eq!(ready.parameter_values().as_map()["busy_seconds"], 1);
    Raw::open(&plane.world.url).await.age(first).await;
    plane.until_proven(first).await;
    let gone = filling(resource, first, "resource.replace");
    let (phase, followed) = (Phase::Ready, false);
    vec![
        Filling { events: CAME_AND_WENT, ..gone },
        Filling {
            phase,
            events: CAME,
            followed,
            ..filling(resource, ready.id(), "resource.delete")
        },
    ]
}

/// An attempt that is gone and that another one followed.
pub(super) fn filling(
    resource: ResourceId,
    attempt: ProvisionedResourceId,
    order: &'static str,
) -> Filling {
    Filling {
        resource,
        attempt,
        phase: Phase::Deleted,
        events: NEVER_CAME,
        followed: true,
        order,
        leaked: false,
        purged: None,
        approvals: 0,
        beside: false,
    }
}

/// A restore is one commit: the slot is filled again, or nothing happened.
async fn restored(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    plane.prove_when_told();
    let resource = plane.declare(handle).await;
    plane.until_phase(resource, Phase::Enrolling).await;
    plane.delete(resource).await;
    let gone = plane.until_phase(resource, Phase::Deleted).await;
    plane.arm();
    plane.restore(gone.resource.deletion_id.unwrap()).await;
    // What becomes of an attempt, other scenarios show.
    plane.disarm();
    let waits = |seen: &ResourceSnapshot| {
        seen.attempt.attempt() == 2 && seen.attempt.phase() == Phase::Enrolling
    };
    plane.until(resource, "the new attempt to wait for its node", waits).await;
    plane.enrol(resource, 1).await;
    let second = plane.until_phase(resource, Phase::Ready).await.attempt.id();
    let first = gone.attempt.id();
    Raw::open(&plane.world.url).await.age(first).await;
    plane.until_proven(first).await;
    vec![
        filling(resource, first, "resource.delete"),
        Filling {
            phase: Phase::Ready,
            events: CAME,
            followed: false,
            // Nothing takes it down, and nobody retried it.
            ..filling(resource, second, "resource.retry")
        },
    ]
}

/// A worker that was paused between its decision and its apply resumes when all
/// is over. The object that it makes is found, recorded, removed and proven
/// absent.
async fn late_apply(plane: &mut Plane<'_>, handle: &str) -> ResourceId {
    let id = ready(plane, handle).await;
    let name = plane.world.name(id).await;
    let object = plane.world.substrate.object(&name).unwrap();
    plane.delete(id).await;
    plane.acknowledge(id).await;
    plane.until_phase(id, Phase::Deleted).await;
    plane.arm();
    plane.world.substrate.apply_late(&name, &object);
    plane.until_gone(id).await;
    id
}

async fn two_at_once(plane: &mut Plane<'_>, handle: &str) -> Vec<ResourceId> {
    plane.arm();
    let mut all = Vec::new();
    for number in 1..=2 {
        all.push(plane.declare(&format!("{handle}-{number}")).await);
    }
    for id in &all {
        plane.until_phase(*id, Phase::Enrolling).await;
    }
    for id in &all {
        plane.enrol(*id, 1).await;
    }
    for id in &all {
        plane.until_phase(*id, Phase::Ready).await;
    }
    for id in &all {
        plane.delete(*id).await;
    }
    for id in &all {
        plane.acknowledge(*id).await;
    }
    for id in &all {
        plane.until_gone(*id).await;
    }
    all
}
