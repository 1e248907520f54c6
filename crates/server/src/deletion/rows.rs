//! The rows of deletions and leaks.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::deletion::plan::{self, ApprovePlan, PlanDeletion};
use slipway_wire::deletion::{
    Brake, CancelDeletion, Deletion, LiftProtection, Protect, Protection, ReleaseBrake,
};
use slipway_wire::deletion::{
    DeletionSetting, Purge, PurgeDeletion, PurgeDeletions, PurgedDeletions, SetDeletionSetting,
};
use slipway_wire::deletion::{Leak, LeakReason, LeakScan, Restore, RestoreDeletion};

use super::{brakes, deletions, leaks, plans, protections, purges, report, restore, settings};
use crate::routes::{Route, delete, get, post, put};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/deletions",          DeletionRead, deletions::list, "List deletions")
            .page::<Deletion>().query(&["project", "state", "kind", "name", "requested_by", "restorable"]),
        get   ("/deletions/{id}",     DeletionRead, deletions::get,  "Show a deletion").one::<Deletion>(),
        post  ("/deletions/{id}/cancel", DeletionCancel, deletions::cancel, "Cancel a deletion before its grace ends")
            .body::<CancelDeletion>().one::<Deletion>(),
        get   ("/brakes",             BrakeRead,    brakes::list,    "List the keys that the deletion brake stopped").page::<Brake>(),
        post  ("/brakes/{key}/release", BrakeRelease, brakes::release, "Let a key delete again that the deletion brake stopped")
            .body::<ReleaseBrake>().one::<Brake>(),
        post  ("/deletion-plans",     DeletionPlan, plans::create, "Plan a deletion: everything that it would take away, in order")
            .body::<PlanDeletion>().one::<plan::DeletionPlan>().statuses(&[201]),
        get   ("/deletion-plans/{id}", DeletionRead, plans::get, "Show a plan of a deletion").one::<plan::DeletionPlan>(),
        post  ("/deletion-plans/{id}/approve", PlanApprove, plans::approve, "Approve a plan that somebody else made")
            .body::<ApprovePlan>().one::<plan::DeletionPlan>(),
        post  ("/deletions/{id}/restore", DeletionRestore, restore::restore, "Restore what a deletion took, all of it or nothing")
            .body::<RestoreDeletion>().one::<Restore>(),
        post  ("/deletions/{id}/purge", DeletionPurge, purges::request, "Count what a purge would remove; with force, purge")
            .body::<PurgeDeletion>().one::<Purge>().statuses(&[200, 202]),
        post  ("/deletion-purges",    DeletionPurge, purges::request_many, "Count the deletions that a purge of many would take, such as those of test data; with force, purge them")
            .body::<PurgeDeletions>().one::<PurgedDeletions>(),
        get   ("/deletion-settings",  DeletionSettingsRead, settings::list, "List the settings of deletions").all::<DeletionSetting>(),
        put   ("/deletion-settings/{project}/{kind}", DeletionSettingsSet, settings::set, "Set grace, retention, approval and purge protection of a project and kind")
            .body::<SetDeletionSetting>().one::<DeletionSetting>(),
        delete("/deletion-settings/{project}/{kind}", DeletionSettingsRemove, settings::remove, "Take the settings of a project and kind away")
            .nothing().query(&["reason"]),
        get   ("/deletions/{id}/report", DeletionRead, report::stream, "Everything that was made for what it deletes, and how each was proven gone")
            .stream("application/x-ndjson"),
        get   ("/protections",        ProtectionRead, protections::list, "List what is protected from deletion").page::<Protection>(),
        put   ("/protections/{kind}/{reference}", ProtectionSet, protections::set, "Protect something from deletion")
            .body::<Protect>().one::<Protection>(),
        delete("/protections/{kind}/{reference}", ProtectionRemove, protections::remove, "Take the protection of something away")
            .nothing().query(&["reason"]),
        post  ("/protections/{kind}/{reference}/lift", ProtectionLift, protections::lift, "Lift the protection of one thing for some minutes")
            .body::<LiftProtection>().one::<Protection>(),
        get   ("/leaks",              LeakRead,     leaks::list,     "List leaks: objects that no row claims, and rows without their object")
            .page::<Leak>().query(&["state", "kind"]),
        post  ("/leaks/find",         LeakFind,     leaks::find,     "Scan for leaks now").all::<LeakScan>(),
        get   ("/leaks/{id}",         LeakRead,     leaks::get,      "Show a leak").one::<Leak>(),
        post  ("/leaks/{id}/resolve", LeakResolve,  leaks::resolve,  "Resolve a leak")
            .body::<LeakReason>().one::<Leak>(),
        post  ("/leaks/{id}/remove",  LeakRemove,   leaks::remove,   "Remove the object of a leak")
            .body::<LeakReason>().one::<Leak>().statuses(&[200, 202]),
    ]
}
