//! Keys, bootstrap tokens and the audit.

use slipway_wire::access::{ApiKey, ApiKeyWithText, AuditEntry, IssuedToken, Token};

use super::table::{facts, optional_time, or_dash, rows, time};

pub(crate) fn keys(keys: &[ApiKey], width: Option<u16>) -> String {
    let line = |key: &ApiKey| {
        vec![
            key.name.clone(),
            key.role.clone(),
            key.state.clone(),
            or_dash(key.project_id.as_deref()),
            or_dash(optional_time(key.expires_at.as_ref()).as_deref()),
            key.id.clone(),
        ]
    };
    let headings = ["NAME", "ROLE", "STATE", "PROJECT", "EXPIRES", "ID"];
    rows(&headings, keys.iter().map(line).collect(), width)
}

pub(crate) fn key(key: &ApiKey, width: Option<u16>) -> String {
    facts(about_key(key), width)
}

/// The text comes last, on a line of its own, where it is never broken.
pub(crate) fn key_with_text(key: &ApiKeyWithText, width: Option<u16>) -> String {
    let about = facts(about_key(&key.about), width);
    match &key.key {
        Some(text) => format!("{about}\n\nThis key is shown once:\n\n    {text}"),
        None => format!("{about}\n\nIts text was shown before; rotate it to get another."),
    }
}

fn about_key(key: &ApiKey) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("name", Some(key.name.clone())),
        ("id", Some(key.id.clone())),
        ("role", Some(key.role.clone())),
        ("project", Some(key.project_id.clone().unwrap_or_else(|| "all".to_owned()))),
        ("state", Some(key.state.clone())),
        ("created", Some(time(&key.created_at))),
        ("created by", key.created_by.clone()),
        ("rotated", optional_time(key.rotated_at.as_ref())),
        ("text before good until", optional_time(key.previous_until.as_ref())),
        ("expires", optional_time(key.expires_at.as_ref())),
        ("revoked", optional_time(key.revoked_at.as_ref())),
        ("revision", Some(key.revision.to_string())),
    ]
}

pub(crate) fn tokens(tokens: &[Token], width: Option<u16>) -> String {
    let line = |token: &Token| {
        vec![
            token.state.clone(),
            time(&token.issued_at),
            time(&token.expires_at),
            or_dash(token.issued_by.as_deref()),
            token.token_id.clone(),
        ]
    };
    let headings = ["STATE", "ISSUED", "EXPIRES", "BY", "ID"];
    rows(&headings, tokens.iter().map(line).collect(), width)
}

pub(crate) fn token(token: &Token, width: Option<u16>) -> String {
    facts(about_token(token), width)
}

pub(crate) fn issued_token(token: &IssuedToken, width: Option<u16>) -> String {
    let about = facts(about_token(&token.about), width);
    match &token.token {
        Some(text) => format!("{about}\n\nThis token is shown once:\n\n    {text}"),
        None => format!("{about}\n\nIts text was shown before; issue another."),
    }
}

fn about_token(token: &Token) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("id", Some(token.token_id.clone())),
        ("state", Some(token.state.clone())),
        ("kind", Some(token.kind.clone())),
        ("attempt", Some(token.provisioned_resource_id.clone())),
        ("issued", Some(time(&token.issued_at))),
        ("issued by", token.issued_by.clone()),
        ("expires", Some(time(&token.expires_at))),
        ("used", optional_time(token.consumed_at.as_ref())),
        ("used by node", token.consumed_by_node_id.clone()),
        ("revoked", optional_time(token.revoked_at.as_ref())),
    ]
}

pub(crate) fn audit(entries: &[AuditEntry], width: Option<u16>) -> String {
    let line = |entry: &AuditEntry| {
        vec![
            time(&entry.at),
            entry.actor.clone(),
            entry.verb.clone(),
            or_dash(entry.reason.as_deref()),
            entry.subject_id.clone(),
        ]
    };
    let headings = ["AT", "ACTOR", "DID", "WHY", "ID"];
    rows(&headings, entries.iter().map(line).collect(), width)
}
