//! The rows of deletions and leaks.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::deletion::Deletion;
use slipway_wire::deletion::{Leak, LeakReason, LeakScan};

use super::{deletions, leaks};
use crate::routes::{Route, get, post};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/deletions",          DeletionRead, deletions::list, "List deletions").page::<Deletion>(),
        get   ("/deletions/{id}",     DeletionRead, deletions::get,  "Show a deletion").one::<Deletion>(),
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
