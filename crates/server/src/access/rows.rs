//! The rows of keys and the audit.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::access::{ApiKey, ApiKeyWithText, AuditEntry, CreateKey, RotateKey};

use super::{audit, keys};
use crate::routes::{Route, delete, get, post};

const FILTERS: [&str; 7] = ["actor", "verb", "kind", "id", "project", "since", "until"];

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/whoami",           KeyShowOwn, keys::whoami,  "Show the key that is asking").one::<ApiKey>(),
        get   ("/keys",             KeyRead,    keys::list,    "List API keys").page::<ApiKey>(),
        post  ("/keys",             KeyCreate,  keys::create,  "Create an API key; its text is shown this once")
            .create::<CreateKey, ApiKeyWithText>(),
        get   ("/keys/{id}",        KeyRead,    keys::get,     "Show an API key").one::<ApiKey>(),
        post  ("/keys/{id}/rotate", KeyRotate,  keys::rotate,  "Rotate an API key; its new text is shown this once")
            .body::<RotateKey>().one::<ApiKeyWithText>().conditional(),
        delete("/keys/{id}",        KeyRevoke,  keys::revoke,  "Revoke an API key").nothing().query(&["reason"]).conditional(),
        get   ("/audit",            AuditRead,  audit::list,   "Read the audit, newest first").page::<AuditEntry>().query(&FILTERS),
        get   ("/audit/export",     AuditRead,  audit::export, "Read all of the audit, oldest first, an entry a line")
            .stream("application/x-ndjson").query(&FILTERS),
    ]
}
