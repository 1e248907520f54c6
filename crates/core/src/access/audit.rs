//! Audit entries: who did what to what, and why. Each is written in the
//! transaction of the change itself, never after it.

use serde_json::Value;
use uuid::Uuid;

use crate::commit::StateChange;
use crate::error::Refusal;
use crate::event::derive_id;
use crate::ids::{AuditEntryId, ProjectId, Revision};
use crate::nearest::not_one_of;
use crate::subject::{Subject, SubjectKind};
use crate::time::Timestamp;

/// Every verb of an entry, `<kind>.<verb>`. A filter for another one is a mistake.
pub const VERBS: &[&str] = &[
    "agent.annotate",
    "agent.confirm_prune",
    "agent.create",
    "agent.delete",
    "agent.label",
    "agent.register",
    "agent.restore",
    "agent.target",
    "agent.unannotate",
    "agent.unlabel",
    "agent.unregister",
    "agent.untarget",
    "agent.update",
    "api_key.create",
    "api_key.install",
    "api_key.replace",
    "api_key.revoke",
    "api_key.rotate",
    "blueprint.create",
    "blueprint.definitions_phase",
    "blueprint.delete",
    "blueprint.publish",
    "blueprint.retire",
    "blueprint.update",
    "brake.release",
    "brake.trip",
    "cloud.create",
    "cloud.delete",
    "cloud.update",
    "cluster.abandon",
    "cluster.assign",
    "cluster.create",
    "cluster.delete",
    "cluster.namespace_phase",
    "cluster.update",
    "cluster.withdraw",
    "control.freeze",
    "control.freeze_expired",
    "control.observe",
    "control.public_url",
    "control.restore",
    "control.restore_detected",
    "control.resume",
    "control.unfreeze",
    "credential.assign",
    "credential.create",
    "credential.delete",
    "credential.update",
    "credential.withdraw",
    "deletion.break_glass",
    "deletion.cancel",
    "deletion.done",
    "deletion.purge",
    "deletion.purged",
    "deletion.reschedule",
    "deletion.restore",
    "deletion.start",
    "deletion_settings.remove",
    "deletion_settings.set",
    "generator.create",
    "generator.delete",
    "generator.restore",
    "generator.update",
    "label.define",
    "label.delete",
    "label.update",
    "leak.remove",
    "leak.resolve",
    "node.deregister",
    "node.drain",
    "node.enrol",
    "node.enrol_again",
    "plan.approve",
    "project.create",
    "project.delete",
    "project.update",
    "protection.lift",
    "protection.remove",
    "protection.set",
    "provisioned_resource.absence_proven",
    "provisioned_resource.follow",
    "provisioned_resource.leak_found",
    "provisioned_resource.phase",
    "resource.abandon",
    "resource.confirm_gone",
    "resource.declare",
    "resource.delete",
    "resource.orphan",
    "resource.reenrol",
    "resource.replace",
    "resource.retry",
    "resource.update",
    "rollout.abort",
    "rollout.end",
    "rollout.pause",
    "rollout.resume",
    "rollout.roll_back",
    "rollout.start",
    "server.break_glass",
    "server.delete",
    "server.mark",
    "server.scale_down",
    "server.scale_up",
    "stack.annotate",
    "stack.create",
    "stack.delete",
    "stack.label",
    "stack.restore",
    "stack.submit",
    "stack.unannotate",
    "stack.unlabel",
    "stack.update",
    "stack.withdraw",
    "subscription.remove",
    "template.annotate",
    "template.create",
    "template.delete",
    "template.label",
    "template.restore",
    "template.unannotate",
    "template.unlabel",
    "template.update",
    "tenant.advance",
    "tenant.close",
    "tenant.delete",
    "tenant.destroy",
    "tenant.export",
    "tenant.migrate",
    "tenant.provision",
    "tenant.reopen",
    "tenant.repair",
    "tenant.resume",
    "tenant.retry",
    "tenant_profile.create",
    "tenant_profile.delete",
    "tenant_profile.update",
    "token.issue",
    "token.mint",
    "token.revoke",
    "workspace.create",
    "workspace.delete",
    "workspace.pause",
    "workspace.resume",
    "workspace.update",
];

/// What the names of actors begin with.
const ACTORS: [&str; 4] = ["key:", "node:", "loop:", "replica:"];

/// Refuses a filter that can match no entry because it is misspelt.
pub fn check_filter(
    actor: Option<&str>,
    verb: Option<&str>,
    kind: Option<&str>,
) -> Result<(), Refusal> {
    let actor = actor.filter(|actor| !ACTORS.iter().any(|kind| actor.starts_with(kind)));
    let actor = actor.map(|_| {
        let problem = "must begin with key:, node:, loop: or replica:, such as key:admin";
        Refusal::invalid("actor", problem)
    });
    let verb = verb.filter(|verb| !VERBS.contains(verb));
    let verb = verb.map(|verb| not_one_of("verb", verb, VERBS));
    let kind = kind.and_then(|kind| SubjectKind::parse_field("kind", kind).err());
    Refusal::all([actor, verb, kind].into_iter().flatten())
}

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
        debug_assert!(VERBS.contains(&verb), "`{verb}` is missing in VERBS");
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

    /// Tells apart two entries of one verb and subject without a revision that a clock of
    /// milliseconds gives one time.
    pub fn caused_by(mut self, cause: Uuid) -> Self {
        let id = self.id.as_uuid();
        self.id = AuditEntryId::new(derive_id(self.at, &[id.as_bytes(), cause.as_bytes()]));
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
