//! The rows of workspaces and servers.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::deletion::Deletion;
use slipway_wire::topology::{
    Because, CancelledTeardown, MarkServer, ReplaceServer, ScaleGroup, ScaledGroup, Server,
    TeardownWorkspace, Workspace,
};

use super::{form, servers, workspaces};
use crate::routes::{Route, delete, get, post};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/workspaces",                                WorkspaceRead,     workspaces::list,     "List workspaces")
            .page::<Workspace>().query(&["project", "show_deleted"]),
        get   ("/workspaces/{workspace}",                    WorkspaceRead,     workspaces::get,      "Show a workspace with its groups")
            .one::<Workspace>(),
        delete("/workspaces/{workspace}",                    WorkspaceDelete,   workspaces::delete,   "Delete a workspace that has no servers")
            .one::<Deletion>().query(&["reason", "grace", "plan", "break_glass"]).conditional(),
        post  ("/workspaces/{workspace}/teardown",           WorkspaceTeardown, workspaces::teardown, "Take a workspace down with its servers, in order; as a dry run, answer the order (`TeardownOrder`)")
            .body::<TeardownWorkspace>().one::<Deletion>().statuses(&[200, 202]),
        post  ("/workspaces/{workspace}/cancel",             WorkspaceCancel,   workspaces::cancel,   "Stop the teardown of a workspace before its next server goes; the workspace stays, paused")
            .body::<Because>().one::<CancelledTeardown>(),
        post  ("/workspaces/{workspace}/pause",              WorkspacePause,    workspaces::pause,    "Make and take down nothing in a workspace for a while, a teardown included")
            .body::<Because>().one::<Workspace>(),
        post  ("/workspaces/{workspace}/resume",             WorkspaceResume,   workspaces::resume,   "Let a paused workspace go on")
            .body::<Because>().one::<Workspace>(),
        post  ("/workspaces/{workspace}/groups/{group}/scale-up",   ServerScaleUp,   servers::scale_up,      "Give a group more servers, up to its maximum")
            .body::<ScaleGroup>().one::<ScaledGroup>(),
        post  ("/workspaces/{workspace}/groups/{group}/scale-down", ServerScaleDown, servers::scale_down_by, "Take servers of a group down, each through the gates: marked ones first, then unhealthy ones, then the newest")
            .body::<ScaleGroup>().one::<ScaledGroup>(),
        get   ("/servers",                                   WorkspaceRead,     servers::list,        "List the servers of workspaces")
            .page::<Server>().query(&["workspace", "project"]),
        get   ("/workspaces/{workspace}/servers/{server}",   WorkspaceRead,     servers::get,         "Show a server").one::<Server>(),
        delete("/workspaces/{workspace}/servers/{server}",   ServerDelete,      servers::delete,      "Delete a server as it is: the minimum and the lock do not count, the quorum does")
            .one::<Deletion>().query(&["reason", "break_glass"]).statuses(&[202]),
        post  ("/workspaces/{workspace}/servers/{server}/scale-down", ServerScaleDown, servers::scale_down, "Take a server down, if every gate lets it")
            .body::<Because>().one::<Deletion>().statuses(&[202]),
        post  ("/workspaces/{workspace}/servers/{server}/mark",       ServerMark,      servers::mark,       "Mark the server that goes first if only a number is given")
            .body::<MarkServer>().one::<Server>(),
        post  ("/workspaces/{workspace}/servers/{server}/replace",    ServerReplace,   servers::replace,    "Give a server another machine")
            .body::<ReplaceServer>().one::<Server>().statuses(&[202]),
    ]
}

/// The rows below `/ui`: what the form of a page sends.
#[rustfmt::skip]
pub(crate) fn form_rows() -> Vec<Route> {
    vec![
        post("/workspaces/{workspace}/servers/{server}/scale-down", ServerScaleDown, form::scale_down, "Take a server down, if every gate lets it")
            .one::<Deletion>().statuses(&[202]),
    ]
}
