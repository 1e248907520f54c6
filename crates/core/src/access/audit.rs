//! Audit entries: who did what to what, and why. Each is written in the
//! transaction of the change itself, never after it.

use serde_json::Value;
use uuid::Uuid;

use crate::commit::StateChange;
use crate::event::derive_id;
use crate::ids::{AuditEntryId, ProjectId, Revision};
use crate::subject::Subject;
use crate::time::Timestamp;

/// On whose behalf something is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// `key:<name>`, `node:<id>` or `loop:<name>`.
    pub name: String,
    /// Identifies the request in logs; loops have none.
    pub correlation_id: Option<String>,
}

impl Actor {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), correlation_id: None }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    pub id: AuditEntryId,
    pub at: Timestamp,
    pub actor: String,
    /// `<kind>.<verb>`, such as `resource.declare`.
    pub verb: &'static str,
    pub subject: Subject,
    pub project_id: Option<ProjectId>,
    pub reason: Option<String>,
    pub details: Value,
    pub correlation_id: Option<String>,
    /// The state change that the entry announces. Its subject may be another one: a
    /// request about a resource changes the state of its attempt.
    pub change: Option<StateChange>,
}

/// What an entry is about, and what makes its id unique.
#[derive(Debug, Clone, Copy)]
pub struct About {
    pub subject: Subject,
    pub project_id: Option<ProjectId>,
    pub revision: Option<Revision>,
}

impl About {
    pub fn new(subject: impl Into<Subject>) -> Self {
        Self { subject: subject.into(), project_id: None, revision: None }
    }

    /// The project that it belongs to.
    pub fn of(self, project_id: ProjectId) -> Self {
        Self { project_id: Some(project_id), ..self }
    }

    /// The revision that the write gives the subject.
    pub fn at(self, revision: Revision) -> Self {
        Self { revision: Some(revision), ..self }
    }
}

impl AuditEntry {
    /// The id derives from the verb, the subject and its new revision, so that a
    /// transaction that runs again writes the same entry. Without a revision the
    /// time makes it unique, and the project: one subject may be assigned to
    /// several at one moment.
    pub fn new(verb: &'static str, actor: &Actor, about: About, at: Timestamp) -> Self {
        let project = about.project_id.map_or(Uuid::nil(), ProjectId::as_uuid);
        let (revision, moment) = (about.revision.map(|r| r.0.to_be_bytes()), at.as_micros());
        let moment = moment.to_be_bytes();
        let mut parts: Vec<&[u8]> = vec![b"audit", verb.as_bytes(), about.subject.id.as_bytes()];
        match &revision {
            Some(revision) => parts.push(revision),
            None => parts.extend([project.as_bytes().as_slice(), &moment]),
        }
        Self {
            id: AuditEntryId::new(derive_id(at, &parts)),
            at,
            actor: actor.name.clone(),
            verb,
            subject: about.subject,
            project_id: about.project_id,
            reason: None,
            details: Value::Object(serde_json::Map::new()),
            correlation_id: actor.correlation_id.clone(),
            change: None,
        }
    }

    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    pub fn with(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    pub fn changing(mut self, change: StateChange) -> Self {
        self.change = Some(change);
        self
    }
}
