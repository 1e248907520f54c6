//! The rows of the broker.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::broker::{
    Abandon, AttemptSummary, DeclareResource, HistoryEntry, Logs, Orphan, Orphaned, Replace,
    Resource, ResourceDetail, Retry, UpdateResource, UpdatedResource,
};
use slipway_wire::deletion::Deletion;
use slipway_wire::nodes::{ConfirmGone, ForceDrain};
use slipway_wire::operations::Explanation;

use super::{changes, explain, resources};
use crate::routes::{Route, delete, get, patch, post};

const FILTERS: [&str; 7] =
    ["project", "handle", "phase", "blueprint", "label", "blocked", "show_deleted"];

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/resources",                  ResourceRead,    resources::list,        "List resources")
            .page::<Resource>().query(&FILTERS),
        post  ("/resources",                  ResourceDeclare, resources::declare,     "Declare a resource")
            .create::<DeclareResource, Resource>().statuses(&[202]),
        get   ("/resources/{id}",             ResourceRead,    resources::get,         "Show a resource").one::<ResourceDetail>(),
        patch ("/resources/{id}",             ResourceUpdate,  changes::update,        "Change labels, parameters or version of a resource, in place")
            .body::<UpdateResource>().one::<UpdatedResource>().query(&["dry_run"]).conditional(),
        delete("/resources/{id}",             ResourceDelete,  resources::delete,      "Delete a resource, in order")
            .one::<Deletion>().query(&["reason", "grace", "plan", "break_glass"]).conditional().statuses(&[202]),
        get   ("/resources/{id}/history",     ResourceRead,    resources::history,     "List the changes of phase of an attempt, newest first; the current one if `attempt` is not given")
            .page::<HistoryEntry>().query(&["attempt"]),
        get   ("/resources/{id}/attempts",    ResourceRead,    resources::attempts,    "List the attempts of a resource, newest first, each with how it failed")
            .page::<AttemptSummary>(),
        get   ("/resources/{id}/explain",     ResourceRead,    explain::resource,      "Explain the state of a resource")
            .one::<Explanation>(),
        get   ("/resources/{id}/logs",        ResourceLogs,    resources::logs,        "Show what the node of a resource wrote, where its engine keeps it")
            .one::<Logs>().query(&["tail", "offset"]).refuses(409),
        post  ("/resources/{id}/force-drain", NodeForceDrain,  resources::force_drain, "Force the drain: do not wait for the node")
            .body::<ForceDrain>().one::<Resource>().statuses(&[202]),
        post  ("/resources/{id}/retry",       ResourceRetry,   resources::retry,       "Retry a failed resource, as declared or with corrections")
            .body::<Retry>().one::<Resource>().statuses(&[202]),
        post  ("/resources/{id}/replace",     ResourceReplace, changes::replace,       "Take a resource down in order and make it anew, as declared or with other parameters or another version")
            .body::<Replace>().one::<Resource>().conditional().statuses(&[202]),
        post  ("/resources/{id}/confirm-gone", ResourceConfirmGone, resources::confirm_gone, "Say that the machine of a resource of engine manual is gone")
            .body::<ConfirmGone>().one::<Resource>().statuses(&[202]),
        post  ("/resources/{id}/abandon",     ResourceAbandon, resources::abandon,     "Abandon a resource whose deletion can never end")
            .body::<Abandon>().one::<Resource>(),
        post  ("/resources/{id}/orphan",      ResourceOrphan,  resources::orphan,      "Keep what holds an overdue teardown in its cloud on purpose, so that the rest can go")
            .body::<Orphan>().one::<Orphaned>().statuses(&[200, 202]),
        get   ("/explain/{reference}",        ResourceRead,    explain::any,           "Explain whatever has this handle, this id, or an id that begins so")
            .one::<Explanation>().query(&["project"]),
        get   ("/explain/{kind}/{reference}", ResourceRead,    explain::explain,       "Explain the state of a resource, attempt, node, deletion, project, cluster, token, leak, roll-out, stack, agent or generator")
            .one::<Explanation>(),
    ]
}
