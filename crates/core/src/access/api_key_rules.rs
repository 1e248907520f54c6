//! Creating, rotating and revoking API keys. Decided one at a time, under the
//! lock of the installation's row, because which key is the last admin key
//! depends on all of them.

use std::time::Duration;

use serde_json::json;

use crate::access::AccessWrite;
use crate::access::api_key::{ApiKey, KeyState, LIFETIME_MAX, LIFETIME_MIN, OVERLAP_MAX, Previous};
use crate::access::audit::{About, Actor, AuditEntry};
use crate::access::role::Role;
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{ApiKeyId, ProjectId, Revision};
use crate::nodes::token::SecretHash;
use crate::precondition::Expected;
use crate::time::Timestamp;

/// What a decision about a key reads.
#[derive(Debug, Clone)]
pub struct KeySnapshot {
    pub now: Timestamp,
    /// The addressed key, or the one that has the requested name.
    pub key: Option<ApiKey>,
    /// The named project, if it is live; locked against deletion.
    pub project: Option<ProjectId>,
    /// All keys that can administer the whole installation now.
    pub usable_admins: Vec<ApiKey>,
}

/// A key about to be created.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub id: ApiKeyId,
    pub name: String,
    /// The only project that the creator's own key reaches; `None` if it reaches all.
    pub reach: Option<ProjectId>,
    pub role: Role,
    /// Name or id as given; the store resolves it into the snapshot.
    pub project: Option<String>,
    pub lifetime: Option<Duration>,
    pub secret: NewSecret,
}

/// The stored part of a new key text.
#[derive(Debug, Clone)]
pub struct NewSecret {
    pub short: String,
    pub hash: SecretHash,
}

pub fn create(snapshot: &KeySnapshot, new: &NewKey, actor: &Actor) -> Result<Commit, Refusal> {
    if let Some(holder) = &snapshot.key {
        if new.reach.is_some_and(|own| holder.project_id != Some(own)) {
            // Names are unique in the installation; keys of others stay hidden.
            let problem = format!("the name `{}` is taken; choose another", new.name);
            return Err(Refusal::new(ErrorKind::NameTaken, problem).at("name"));
        }
        let state = if holder.is_usable(snapshot.now) {
            "already"
        } else {
            "already; it cannot be used any more, but the audit still names it"
        };
        return Err(Refusal::new(
            ErrorKind::NameTaken,
            format!("there is a key `{}` {state}; choose another name", new.name),
        )
        .at("name")
        .with(json!({ "id": holder.id })));
    }
    if let (Some(wanted), None) = (&new.project, snapshot.project) {
        return Err(Refusal::new(
            ErrorKind::ProjectNotFound,
            format!("there is no project `{wanted}`; name an existing one"),
        )
        .at("project"));
    }
    if let Some(lifetime) = new.lifetime
        && !(LIFETIME_MIN..=LIFETIME_MAX).contains(&lifetime)
    {
        let (least, most) = (LIFETIME_MIN.as_secs(), LIFETIME_MAX.as_secs());
        return Err(Refusal::invalid("ttl_seconds", format!("must be from {least} to {most}")));
    }
    let key = ApiKey {
        id: new.id,
        name: new.name.clone(),
        role: new.role,
        project_id: new.project.as_ref().and(snapshot.project),
        project_deleted_at: None,
        short: new.secret.short.clone(),
        hash: new.secret.hash,
        previous: None,
        created_by: Some(actor.name.clone()),
        created_at: snapshot.now,
        rotated_at: None,
        expires_at: new.lifetime.map(|lifetime| snapshot.now.plus(lifetime)),
        revoked_at: None,
        revision: Revision::FIRST,
    };
    let entry = audit("api_key.create", &key, actor, snapshot.now).with(json!({
        "name": key.name,
        "role": key.role,
        "project_id": key.project_id,
        "expires_at": key.expires_at,
    }));
    Ok(commit(AccessWrite::ApiKeyInsert(key), entry))
}

/// Gives the key a new secret. The current one stays valid for `overlap`; an
/// older one that was still valid ends now.
pub fn rotate(
    snapshot: &KeySnapshot,
    secret: &NewSecret,
    overlap: Duration,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let key = existing(snapshot)?;
    expected.check("key", key.revision)?;
    let why = match key.state(snapshot.now) {
        KeyState::Usable => None,
        KeyState::Revoked => Some("is revoked; create a new one"),
        KeyState::Expired => Some("is expired; create a new one"),
        KeyState::ProjectDeleted => Some("is bound to a project that is deleted; create a new one"),
    };
    if let Some(why) = why {
        let problem = format!("key `{}` {why}", key.name);
        return Err(Refusal::new(ErrorKind::KeyNotUsable, problem));
    }
    if overlap > OVERLAP_MAX {
        let most = OVERLAP_MAX.as_secs();
        return Err(Refusal::invalid("overlap_seconds", format!("must be from 0 to {most}")));
    }
    // Recorded also without an overlap: a start installs a configured key text
    // again unless it is known as replaced. Its end is then time zero, so it
    // has expired by every clock.
    let until = (!overlap.is_zero()).then(|| snapshot.now.plus(overlap));
    let previous = Some(Previous {
        short: key.short.clone(),
        hash: key.hash,
        until: until.unwrap_or(Timestamp::ZERO),
    });
    let rotated = ApiKey {
        short: secret.short.clone(),
        hash: secret.hash,
        previous,
        rotated_at: Some(snapshot.now),
        ..key.clone()
    };
    let entry = audit("api_key.rotate", key, actor, snapshot.now)
        .with(json!({ "name": key.name, "previous_until": until }));
    Ok(commit(AccessWrite::ApiKeyUpdate(rotated), entry))
}

/// Ends the key at once. Writes nothing if the key is revoked already.
///
/// *Guarantee.* If a key without expiry administered the installation before,
/// one still does afterwards: neither a revocation nor the passing of time
/// locks everybody out.
pub fn revoke(
    snapshot: &KeySnapshot,
    expected: Expected,
    reason: Option<&str>,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let key = existing(snapshot)?;
    expected.check("key", key.revision)?;
    if key.revoked_at.is_some() {
        return Ok(Commit::default());
    }
    let others = || snapshot.usable_admins.iter().filter(|usable_admin| usable_admin.id != key.id);
    let lasting = others().any(|usable_admin| usable_admin.expires_at.is_none());
    if key.keeps_administration(snapshot.now)
        && !lasting
        && (key.expires_at.is_none() || others().count() == 0)
    {
        return Err(Refusal::new(
            ErrorKind::LastAdminKey,
            format!(
                "key `{}` is the last one that can administer this installation for good; create \
                 another admin key without project and expiry first",
                key.name
            ),
        ));
    }
    let revoked = ApiKey { revoked_at: Some(snapshot.now), ..key.clone() };
    let mut entry = audit("api_key.revoke", key, actor, snapshot.now);
    entry.reason = reason.map(str::to_owned);
    Ok(commit(AccessWrite::ApiKeyUpdate(revoked), entry))
}

fn existing(snapshot: &KeySnapshot) -> Result<&ApiKey, Refusal> {
    snapshot.key.as_ref().ok_or_else(not_found)
}

/// The same refusal for an unknown key and for one of another project.
pub fn not_found() -> Refusal {
    Refusal::new(ErrorKind::KeyNotFound, "there is no such key; check its id")
}

/// What happened to a key, by its name.
pub fn audit(verb: &'static str, key: &ApiKey, actor: &Actor, now: Timestamp) -> AuditEntry {
    let about = About { project_id: key.project_id, ..About::new(key.id) };
    AuditEntry::new(verb, actor, about, now).with(json!({ "name": key.name }))
}

fn commit(write: AccessWrite, entry: AuditEntry) -> Commit {
    Commit { writes: vec![Write::Access(write)], audit: vec![entry], ..Commit::default() }
}

#[cfg(test)]
mod tests;
