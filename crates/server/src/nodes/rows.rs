//! The rows of nodes and bootstrap tokens.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::nodes::Node;
use slipway_wire::nodes::{IssueToken, IssuedToken, Reenrol, Token};

use super::{registry, tokens};
use crate::routes::{Route, delete, get, post};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/nodes",                 NodeRead,    registry::list, "List nodes").page::<Node>(),
        get   ("/nodes/{id}",            NodeRead,    registry::get,  "Show a node").one::<Node>(),
        get   ("/resources/{id}/tokens", TokenRead,   tokens::list,   "List the bootstrap tokens of a resource").page::<Token>(),
        post  ("/resources/{id}/tokens", TokenIssue,  tokens::issue,  "Issue a bootstrap token; its text is shown this once")
            .create::<IssueToken, IssuedToken>(),
        post  ("/resources/{id}/reenrol", ResourceReenrol, tokens::reenrol, "Let the machine of a resource enrol again: end its silent or departed node and issue a bootstrap token, which is shown this once")
            .create::<Reenrol, IssuedToken>(),
        get   ("/tokens/{id}",           TokenRead,   tokens::get,    "Show a bootstrap token").one::<Token>(),
        delete("/tokens/{id}",           TokenRevoke, tokens::revoke, "Revoke a bootstrap token").nothing().query(&["reason"]),
    ]
}
