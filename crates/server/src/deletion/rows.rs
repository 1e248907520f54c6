//! The rows of deletions and leaks.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::deletion::{CancelDeletion, Deletion, LiftProtection, Protect, Protection};
use slipway_wire::deletion::{Leak, LeakReason, LeakScan};

use super::{deletions, leaks, protections, report};
use crate::routes::{Route, delete, get, post, put};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/deletions",          DeletionRead, deletions::list, "List deletions").page::<Deletion>(),
        get   ("/deletions/{id}",     DeletionRead, deletions::get,  "Show a deletion").one::<Deletion>(),
        post  ("/deletions/{id}/cancel", DeletionCancel, deletions::cancel, "Cancel a deletion before its grace ends")
            .body::<CancelDeletion>().one::<Deletion>(),
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
