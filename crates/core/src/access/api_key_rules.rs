//! Creating, rotating and revoking API keys, and installing one at the start of
//! the binary. Decided one at a time, under the lock of the installation's row,
//! because which key is the last admin key depends on all of them.
//!
//! Whatever takes a text away from a key also withdraws its hash, in the same
//! commit. A start installs no withdrawn text, so a configuration that nobody
//! updated after a rotation revives nothing.

use std::time::Duration;

use serde_json::json;

use crate::access::AccessWrite;
use crate::access::api_key::{
    ApiKey, KeyState, LIFETIME_MAX, LIFETIME_MIN, OVERLAP_MAX, Previous, Principal,
};
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
    /// Of an installation: what is known of its text.
    pub text: KnownText,
}

/// What the database knows of a text that a start installs.
#[derive(Debug, Clone, Default)]
pub struct KnownText {
    /// The keys of any name that have its short part or its secret, or had its
    /// secret before their last rotation.
    pub holders: Vec<ApiKey>,
    /// Whether its hash was withdrawn from some key.
    pub withdrawn: bool,
}

/// A key about to be created.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub id: ApiKeyId,
    pub name: String,
    pub owner: String,
    /// The only project that the creator's own key reaches; `None` if it reaches all.
    pub reach: Option<ProjectId>,
    pub role: Role,
    pub principal: Principal,
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

/// An admin key of the whole installation, as a start installs it.
#[derive(Debug, Clone)]
pub struct InstalledKey {
    /// The id of the row, unless the name has one already.
    pub id: ApiKeyId,
    pub name: String,
    pub secret: NewSecret,
}

/// When a key is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Install {
    /// Only if no usable admin key exists.
    First,
    /// Replaces the key of the same name.
    Replace,
}

/// The result of installing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    Inserted,
    Replaced,
    /// The text is that of a usable admin key already, maybe of another name.
    Unchanged,
    /// Another key exists, and this one was to be the first.
    Occupied,
    /// The text was rotated away, replaced or revoked, or it has expired; it stays so.
    Withdrawn,
    /// Another key has this text or its short part, and is no admin key of the installation.
    Taken,
}

/// Installs a key at the start of the binary. Anything but `Inserted` and
/// `Replaced` writes nothing and leaves every key as it is.
///
/// *Guarantees.* A withdrawn text is never accepted again, under no name. If a
/// key could administer the installation before, one still can. Replicas that
/// install different texts under one name end with the last of them: the others
/// are withdrawn, so that their restarts do not take turns.
pub fn install(
    snapshot: &KeySnapshot,
    new: &InstalledKey,
    when: Install,
    actor: &Actor,
) -> (Installed, Commit) {
    let known = known(snapshot, new);
    let occupied = when == Install::First && !snapshot.usable_admins.is_empty();
    let unwritten = match known {
        // The first key may be this one, if the answer to an earlier call was lost.
        Some(Installed::Unchanged) => known,
        _ if occupied => Some(Installed::Occupied),
        _ => known,
    };
    if let Some(unwritten) = unwritten {
        return (unwritten, Commit::default());
    }
    let fresh = ApiKey {
        created_at: snapshot.now,
        ..ApiKey::of_installation(new.id, &new.name, &new.secret.short, new.secret.hash)
    };
    match &snapshot.key {
        None => {
            let entry = audit("api_key.install", &fresh, Revision::FIRST, actor, snapshot.now);
            (Installed::Inserted, commit(AccessWrite::ApiKeyInsert(fresh), entry))
        }
        Some(before) => {
            let replaced = ApiKey {
                id: before.id,
                created_by: before.created_by.clone(),
                created_at: before.created_at,
                rotated_at: Some(snapshot.now),
                revision: before.revision,
                ..fresh
            };
            let revision = before.revision.next();
            let entry =
                audit("api_key.replace", &replaced, revision, actor, snapshot.now).with(json!({
                    "name": before.name,
                    "role_before": before.role,
                    "project_before": before.project_id,
                }));
            let commit = commit(AccessWrite::ApiKeyUpdate(replaced), entry);
            (Installed::Replaced, withdrawing(commit, before))
        }
    }
}

/// Why this text must not be written, if so.
fn known(snapshot: &KeySnapshot, new: &InstalledKey) -> Option<Installed> {
    let KnownText { holders, withdrawn } = &snapshot.text;
    let NewSecret { short, hash } = &new.secret;
    let current = |key: &&ApiKey| key.short == *short && key.hash == *hash;
    if holders.iter().find(current).is_some_and(|key| key.keeps_administration(snapshot.now)) {
        return Some(Installed::Unchanged);
    }
    let ended = |key: &ApiKey| {
        (key.hash == *hash && !key.is_usable(snapshot.now))
            || key.previous.as_ref().is_some_and(|previous| previous.hash == *hash)
    };
    if *withdrawn || holders.iter().any(ended) {
        return Some(Installed::Withdrawn);
    }
    // The key of this name gives up its short part, but not its secret.
    let own = snapshot.key.as_ref().map(|key| key.id);
    let held = |key: &ApiKey| Some(key.id) != own || key.hash == *hash;
    holders.iter().any(held).then_some(Installed::Taken)
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
        owner: new.owner.clone(),
        role: new.role,
        project_id: new.project.as_ref().and(snapshot.project),
        project_deleted_at: None,
        principal: new.principal,
        principal_deleted_at: None,
        short: new.secret.short.clone(),
        hash: new.secret.hash,
        previous: None,
        created_by: Some(actor.name.clone()),
        created_at: snapshot.now,
        rotated_at: None,
        rotated_by: None,
        expires_at: new.lifetime.map(|lifetime| snapshot.now.plus(lifetime)),
        revoked_at: None,
        revision: Revision::FIRST,
    };
    let entry = audit("api_key.create", &key, Revision::FIRST, actor, snapshot.now).with(json!({
        "name": key.name,
        "owner": key.owner,
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
        KeyState::PrincipalDeleted => Some("belongs to something that is deleted; restore that"),
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
    // Without an overlap its end is time zero, so it has expired by every clock.
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
        rotated_by: Some(actor.name.clone()),
        ..key.clone()
    };
    let entry = audit("api_key.rotate", key, key.revision.next(), actor, snapshot.now)
        .with(json!({ "name": key.name, "previous_until": until }));
    Ok(withdrawing(commit(AccessWrite::ApiKeyUpdate(rotated), entry), key))
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
    let mut entry = audit("api_key.revoke", key, key.revision.next(), actor, snapshot.now);
    entry.reason = reason.map(str::to_owned);
    Ok(withdrawing(commit(AccessWrite::ApiKeyUpdate(revoked), entry), key))
}

/// Withdraws the texts that a key has before this commit. The one before its
/// last rotation was withdrawn then.
fn withdrawing(mut commit: Commit, before: &ApiKey) -> Commit {
    commit.writes.push(Write::Access(AccessWrite::HashWithdraw(before.hash)));
    commit
}

fn existing(snapshot: &KeySnapshot) -> Result<&ApiKey, Refusal> {
    snapshot.key.as_ref().ok_or_else(not_found)
}

/// The same refusal for an unknown key and for one of another project.
pub fn not_found() -> Refusal {
    Refusal::new(ErrorKind::KeyNotFound, "there is no such key; check its id")
}

/// What happened to a key, by its name. The revision that the write gives it makes the
/// entry unique: two rotations may have the same time.
fn audit(
    verb: &'static str,
    key: &ApiKey,
    revision: Revision,
    actor: &Actor,
    now: Timestamp,
) -> AuditEntry {
    let about = About { project_id: key.project_id, ..About::new(key.id).at(revision) };
    AuditEntry::new(verb, actor, about, now).with(json!({ "name": key.name }))
}

fn commit(write: AccessWrite, entry: AuditEntry) -> Commit {
    Commit { writes: vec![Write::Access(write)], audit: vec![entry], ..Commit::default() }
}

#[cfg(test)]
mod tests;
