//! Protection: a flag in the database beside a thing, which every way to delete it
//! honours, deletions of what contains it included. An admin may lift it for one thing
//! and some minutes; nobody has to remember to set it again.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::event::PROTECTION_LIFTED;
use crate::error::{ErrorKind, Refusal};
use crate::event::Event;
use crate::ids::{EventId, ProjectId, Revision};
use crate::subject::{Subject, SubjectKind};
use crate::text::Reason;
use crate::time::Timestamp;

/// The longest time that protection may be lifted for.
pub const OVERRIDE_MAX: Duration = Duration::from_secs(3_600);

/// The protection of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    pub subject: Subject,
    /// The project that contains it, or is it.
    pub project_id: Option<ProjectId>,
    /// The name of the thing, for people.
    pub name: String,
    pub set_by: String,
    pub reason: String,
    pub set_at: Timestamp,
    pub lifted: Option<Lifted>,
}

/// Who lifted a protection, why, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifted {
    pub by: String,
    pub reason: String,
    pub until: Timestamp,
}

impl Protection {
    pub fn holds(&self, now: Timestamp) -> bool {
        self.lifted.as_ref().is_none_or(|lifted| lifted.until <= now)
    }

    /// `resource web-1`.
    fn shown(&self) -> String {
        format!("{} `{}`", self.subject.kind, self.name)
    }
}

/// A thing that can be protected, its row locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectionSnapshot {
    pub now: Timestamp,
    pub subject: Subject,
    pub name: String,
    pub project_id: Option<ProjectId>,
    /// It is being taken down: protection would come too late.
    pub is_leaving: bool,
    pub protection: Option<Protection>,
}

/// Refuses a deletion that one of these protections forbids, and names them.
pub fn check(protections: &[Protection], now: Timestamp) -> Result<(), Refusal> {
    const NAMED: usize = 5;
    let holding: Vec<&Protection> =
        protections.iter().filter(|protection| protection.holds(now)).collect();
    let Some(first) = holding.first() else { return Ok(()) };
    let mut named: Vec<String> = holding.iter().take(NAMED).map(|p| p.shown()).collect();
    if holding.len() > NAMED {
        named.push(format!("{} more", holding.len() - NAMED));
    }
    let verb = if holding.len() == 1 { "is" } else { "are" };
    let whose = if holding.len() == 1 { String::new() } else { format!("{} ", first.shown()) };
    let message = format!(
        "{} {verb} protected ({}by {}: {}); if it may go, take the protection away with `slipway protection remove {} {}`, or lift it for some minutes with `slipway protection lift`",
        named.join(", "),
        whose,
        first.set_by,
        first.reason,
        first.subject.kind,
        first.name,
    );
    let details: Vec<_> = holding
        .iter()
        .take(100)
        .map(|p| json!({ "kind": p.subject.kind, "id": p.subject.id, "name": p.name }))
        .collect();
    Err(Refusal::new(ErrorKind::Protected, message).with(json!({ "protected": details })))
}

/// Protects a thing. Repeated, it changes nothing.
pub fn protect(
    snapshot: &ProtectionSnapshot,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    if snapshot.is_leaving {
        let message = format!(
            "{} `{}` is being deleted, and protection would come too late; `slipway deletion list` shows its deletion",
            snapshot.subject.kind, snapshot.name
        );
        return Err(Refusal::new(ErrorKind::Leaving, message));
    }
    if snapshot.protection.is_some() {
        return Ok(Commit::default());
    }
    let protection = Protection {
        subject: snapshot.subject,
        project_id: snapshot.project_id,
        name: snapshot.name.clone(),
        set_by: actor.name.clone(),
        reason: reason.as_str().to_owned(),
        set_at: snapshot.now,
        lifted: None,
    };
    let write = DeletionWrite::Protect(protection);
    Ok(written(snapshot, write, "protection.set", reason, actor))
}

/// Protects something in the commit that creates it, because its declaration says so.
#[must_use]
pub fn declared(
    mut commit: Commit,
    subject: Subject,
    project_id: Option<ProjectId>,
    name: &str,
    actor: &Actor,
    now: Timestamp,
) -> Commit {
    commit.writes.push(Write::Deletion(DeletionWrite::Protect(Protection {
        subject,
        project_id,
        name: name.to_owned(),
        set_by: actor.name.clone(),
        reason: "declared so".to_owned(),
        set_at: now,
        lifted: None,
    })));
    for entry in commit.audit.iter_mut().filter(|entry| entry.subject == subject) {
        entry.details["protected"] = json!(true);
    }
    commit
}

/// Takes the protection of a thing away. Repeated, it changes nothing.
pub fn unprotect(snapshot: &ProtectionSnapshot, reason: &Reason, actor: &Actor) -> Commit {
    if snapshot.protection.is_none() {
        return Commit::default();
    }
    let write = DeletionWrite::Unprotect(snapshot.subject);
    written(snapshot, write, "protection.remove", reason, actor)
}

/// Lifts the protection of one thing for a while.
pub fn lift(
    snapshot: &ProtectionSnapshot,
    duration: Duration,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let Some(protection) = &snapshot.protection else {
        let message = format!(
            "{} `{}` is not protected; there is nothing to lift",
            snapshot.subject.kind, snapshot.name
        );
        return Err(Refusal::new(ErrorKind::NothingToLift, message));
    };
    if duration.is_zero() || duration > OVERRIDE_MAX {
        return Err(Refusal::invalid("for", "must be between 1 second and 1 hour, such as `10m`"));
    }
    let lifted = Lifted {
        by: actor.name.clone(),
        reason: reason.as_str().to_owned(),
        until: snapshot.now.plus(duration),
    };
    let until = lifted.until;
    let protection = Protection { lifted: Some(lifted), ..protection.clone() };
    let write = DeletionWrite::Protect(protection);
    let mut commit = written(snapshot, write, "protection.lift", reason, actor);
    for entry in &mut commit.audit {
        entry.details["until"] = json!(until);
    }
    let payload = |event_id| Payload {
        event_id,
        occurred_at: snapshot.now,
        kind: snapshot.subject.kind,
        target_id: snapshot.subject.id,
        name: &snapshot.name,
        project_id: snapshot.project_id,
        by: &actor.name,
        reason: reason.as_str(),
        lifted_until: until,
    };
    // A protection has no revision; the moment tells two of its lifts apart.
    let revision = Revision(snapshot.now.as_micros());
    let (subject, project, now) = (snapshot.subject, snapshot.project_id, snapshot.now);
    commit.events.push(Event::new(PROTECTION_LIFTED, subject, revision, project, now, payload));
    Ok(commit)
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Payload<'a> {
    #[serde(rename = "EventID")]
    event_id: EventId,
    occurred_at: Timestamp,
    kind: SubjectKind,
    #[serde(rename = "TargetID")]
    target_id: Uuid,
    name: &'a str,
    #[serde(rename = "ProjectID", skip_serializing_if = "Option::is_none")]
    project_id: Option<ProjectId>,
    by: &'a str,
    reason: &'a str,
    lifted_until: Timestamp,
}

/// The protection as this commit leaves it.
pub fn after(snapshot: &ProtectionSnapshot, commit: &Commit) -> Option<Protection> {
    let written = commit.writes.iter().find_map(|write| match write {
        Write::Deletion(DeletionWrite::Protect(protection)) => Some(Some(protection.clone())),
        Write::Deletion(DeletionWrite::Unprotect(_)) => Some(None),
        _ => None,
    });
    written.unwrap_or_else(|| snapshot.protection.clone())
}

fn written(
    snapshot: &ProtectionSnapshot,
    write: DeletionWrite,
    verb: &'static str,
    reason: &Reason,
    actor: &Actor,
) -> Commit {
    let about = About::new(snapshot.subject);
    let about = snapshot.project_id.map_or(about, |project| about.of(project));
    let entry = AuditEntry::new(verb, actor, about, snapshot.now)
        .because(reason.as_str())
        .with(json!({ "name": snapshot.name }));
    Commit { writes: vec![Write::Deletion(write)], audit: vec![entry], ..Commit::default() }
}
