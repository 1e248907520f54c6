//! Audit entries: who did what to what, and why. Each is written in the
//! transaction of the change itself, never after it.

use serde_json::Value;
use uuid::Uuid;

use crate::event::derive_id;
use crate::ids::{AuditEntryId, ProjectId, Revision};
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
    pub subject_kind: &'static str,
    pub subject_id: Uuid,
    pub project_id: Option<ProjectId>,
    pub reason: Option<String>,
    pub details: Value,
    pub correlation_id: Option<String>,
}

/// What an entry is about.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    pub kind: &'static str,
    pub id: Uuid,
    pub project_id: ProjectId,
    /// The revision that the write gives the subject; it makes the id unique.
    pub revision: Revision,
}

impl AuditEntry {
    pub fn new(verb: &'static str, actor: &Actor, subject: Subject, at: Timestamp) -> Self {
        Self {
            id: AuditEntryId::new(derive_id(
                at,
                &[
                    b"audit",
                    verb.as_bytes(),
                    subject.id.as_bytes(),
                    &subject.revision.0.to_be_bytes(),
                ],
            )),
            at,
            actor: actor.name.clone(),
            verb,
            subject_kind: subject.kind,
            subject_id: subject.id,
            project_id: Some(subject.project_id),
            reason: None,
            details: Value::Object(serde_json::Map::new()),
            correlation_id: actor.correlation_id.clone(),
        }
    }

    /// An entry about something that belongs to no project and has no revision;
    /// the time makes the id unique.
    pub fn of_installation(
        verb: &'static str,
        actor: &Actor,
        subject_kind: &'static str,
        subject_id: Uuid,
        at: Timestamp,
    ) -> Self {
        let moment = at.as_micros().to_be_bytes();
        let parts = [b"audit", verb.as_bytes(), subject_id.as_bytes().as_slice(), &moment];
        Self {
            id: AuditEntryId::new(derive_id(at, &parts)),
            at,
            actor: actor.name.clone(),
            verb,
            subject_kind,
            subject_id,
            project_id: None,
            reason: None,
            details: Value::Object(serde_json::Map::new()),
            correlation_id: actor.correlation_id.clone(),
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
}
