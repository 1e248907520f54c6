//! The table of our own routes. The router is built from it, every row is
//! guarded by what it says, and tests walk it: a route that is not here is not
//! served, and one that is here cannot be served to others than it names.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::MethodRouter;
use slipway_core::access::{Role, Scope};

use super::guard::{Guard, guard};
use super::{
    audit, blueprints, clouds, clusters, control, credentials, deletions, events, explain, keys,
    labels, leaks, loops, nodes, projects, resources, subscriptions, tokens,
};
use crate::state::ServerState;

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// In capitals.
    pub method: &'static str,
    /// Below `/api/v1`, with its parameters in braces.
    pub path: &'static str,
    /// The least role that may ask.
    pub least: Role,
    /// How far it reaches, and so which keys may ask.
    pub scope: Scope,
    /// What the audit calls it; nothing, if it changes nothing.
    pub audit: Option<&'static str>,
    handler: fn() -> MethodRouter<ServerState>,
}

macro_rules! table {
    ($($method:ident $path:literal $least:ident $scope:ident $audit:tt => $handler:path;)*) => {
        &[$(Route {
            method: table!(@method $method),
            path: $path,
            least: Role::$least,
            scope: Scope::$scope,
            audit: table!(@audit $audit),
            handler: || axum::routing::$method($handler),
        },)*]
    };
    (@method get) => { "GET" };
    (@method post) => { "POST" };
    (@method put) => { "PUT" };
    (@method patch) => { "PATCH" };
    (@method delete) => { "DELETE" };
    (@audit -) => { None };
    (@audit $verb:literal) => { Some($verb) };
}

/// Every route: method, path, least role, scope, audit verb, handler.
#[rustfmt::skip]
pub static TABLE: &[Route] = table! {
    get    "/resources"                   Viewer   Project      -                     => resources::list;
    post   "/resources"                   Operator Project      "resource.declare"    => resources::declare;
    get    "/resources/{id}"              Viewer   Project      -                     => resources::get;
    patch  "/resources/{id}"              Operator Project      "resource.relabel"    => resources::relabel;
    delete "/resources/{id}"              Operator Project      "resource.delete"     => resources::delete;
    get    "/resources/{id}/explain"      Viewer   Project      -                     => explain::resource;
    post   "/resources/{id}/force-drain"  Admin    Project      "node.deregister"     => resources::force_drain;
    post   "/resources/{id}/retry"        Operator Project      "resource.retry"      => resources::retry;
    get    "/resources/{id}/tokens"       Viewer   Project      -                     => tokens::list;
    post   "/resources/{id}/tokens"       Operator Project      "token.issue"         => tokens::issue;
    get    "/tokens/{id}"                 Viewer   Project      -                     => tokens::get;
    delete "/tokens/{id}"                 Operator Project      "token.revoke"        => tokens::revoke;
    get    "/explain/{kind}/{reference}"  Viewer   Project      -                     => explain::explain;
    get    "/nodes"                       Viewer   Project      -                     => nodes::list;
    get    "/nodes/{id}"                  Viewer   Project      -                     => nodes::get;
    get    "/deletions"                   Viewer   Project      -                     => deletions::list;
    get    "/deletions/{id}"              Viewer   Project      -                     => deletions::get;
    get    "/events"                      Viewer   Project      -                     => events::list;
    get    "/events/stream"               Viewer   Project      -                     => events::follow;
    get    "/audit"                       Viewer   Project      -                     => audit::list;
    get    "/audit/export"                Viewer   Project      -                     => audit::export;
    get    "/subscriptions"               Viewer   Installation -                     => subscriptions::list;
    delete "/subscriptions/{name}"        Admin    Installation "subscription.remove" => subscriptions::remove;
    get    "/leaks"                       Viewer   Installation -                     => leaks::list;
    post   "/leaks/find"                  Operator Installation -                     => leaks::find;
    get    "/leaks/{id}"                  Viewer   Installation -                     => leaks::get;
    post   "/leaks/{id}/resolve"          Operator Installation "leak.resolve"        => leaks::resolve;
    post   "/leaks/{id}/remove"           Operator Installation "leak.remove"         => leaks::remove;
    get    "/loops"                       Viewer   Installation -                     => loops::list;
    get    "/control"                     Viewer   Shared       -                     => control::get;
    put    "/control/freeze"              Admin    Installation "control.freeze"      => control::freeze;
    delete "/control/freeze"              Admin    Installation "control.unfreeze"    => control::unfreeze;
    post   "/control/resume"              Admin    Installation "control.resume"      => control::resume;
    get    "/control/plan"                Viewer   Installation -                     => control::plan;

    get    "/whoami"                      Viewer   Shared       -                     => keys::whoami;
    get    "/keys"                        Admin    Project      -                     => keys::list;
    post   "/keys"                        Admin    Project      "api_key.create"      => keys::create;
    get    "/keys/{id}"                   Admin    Project      -                     => keys::get;
    post   "/keys/{id}/rotate"            Admin    Project      "api_key.rotate"      => keys::rotate;
    delete "/keys/{id}"                   Admin    Project      "api_key.revoke"      => keys::revoke;

    get    "/projects"                    Viewer   Project      -                     => projects::list;
    post   "/projects"                    Admin    Installation "project.create"      => projects::create;
    get    "/projects/{project}"          Viewer   Project      -                     => projects::get;
    patch  "/projects/{project}"          Admin    Project      "project.update"      => projects::update;
    delete "/projects/{project}"          Admin    Installation "project.delete"      => projects::delete;
    get    "/projects/{project}/credentials" Viewer Project     -                     => credentials::assigned;
    put    "/projects/{project}/credentials/{credential}" Admin Installation "credential.assign" => credentials::assign;
    delete "/projects/{project}/credentials/{credential}" Admin Installation "credential.withdraw" => credentials::withdraw;
    get    "/projects/{project}/cluster"  Viewer   Project      -                     => clusters::assignment;
    put    "/projects/{project}/cluster"  Admin    Installation "cluster.assign"      => clusters::assign;
    delete "/projects/{project}/cluster"  Admin    Installation "cluster.withdraw"    => clusters::withdraw;
    get    "/clouds"                      Viewer   Shared       -                     => clouds::list;
    post   "/clouds"                      Admin    Installation "cloud.create"        => clouds::create;
    get    "/clouds/{cloud}"              Viewer   Shared       -                     => clouds::get;
    patch  "/clouds/{cloud}"              Admin    Installation "cloud.update"        => clouds::update;
    delete "/clouds/{cloud}"              Admin    Installation "cloud.delete"        => clouds::delete;
    get    "/credentials"                 Viewer   Installation -                     => credentials::list;
    post   "/credentials"                 Admin    Installation "credential.create"   => credentials::create;
    get    "/credentials/{id}"            Viewer   Installation -                     => credentials::get;
    patch  "/credentials/{id}"            Admin    Installation "credential.update"   => credentials::update;
    delete "/credentials/{id}"            Admin    Installation "credential.delete"   => credentials::delete;
    get    "/blueprints"                  Viewer   Shared       -                     => blueprints::list;
    post   "/blueprints"                  Admin    Installation "blueprint.create"    => blueprints::create;
    get    "/blueprints/{blueprint}"      Viewer   Shared       -                     => blueprints::get;
    patch  "/blueprints/{blueprint}"      Admin    Installation "blueprint.update"    => blueprints::update;
    get    "/blueprints/{blueprint}/versions" Viewer Shared     -                     => blueprints::versions;
    post   "/blueprints/{blueprint}/versions" Admin Installation "blueprint.publish"  => blueprints::publish;
    get    "/blueprints/{blueprint}/versions/{version}" Viewer Shared -               => blueprints::version;
    post   "/blueprints/{blueprint}/versions/{version}/retire" Admin Installation "blueprint.retire" => blueprints::retire;
    get    "/blueprints/{blueprint}/deliveries" Viewer Shared   -                     => blueprints::deliveries;
    get    "/labels"                      Viewer   Shared       -                     => labels::list;
    post   "/labels"                      Admin    Installation "label.define"        => labels::define;
    get    "/labels/{label}"              Viewer   Shared       -                     => labels::get;
    patch  "/labels/{label}"              Admin    Installation "label.update"        => labels::update;
    delete "/labels/{label}"              Admin    Installation "label.delete"        => labels::delete;
    get    "/clusters"                    Viewer   Shared       -                     => clusters::list;
    post   "/clusters"                    Admin    Installation "cluster.create"      => clusters::create;
    get    "/clusters/{cluster}"          Viewer   Shared       -                     => clusters::get;
    get    "/cluster-assignments"         Viewer   Installation -                     => clusters::assignments;
};

/// The router of the table: methods of one path merged, each behind its guard.
pub(crate) fn routes(state: &ServerState) -> Router<ServerState> {
    TABLE.iter().fold(Router::new(), |router, route| {
        let layer = from_fn_with_state(Guard { state: state.clone(), route }, guard);
        // Only where the method is taken: what is not is 405 to everybody.
        router.route(route.path, (route.handler)().route_layer(layer))
    })
}
