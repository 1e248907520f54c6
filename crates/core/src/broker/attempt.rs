//! `ProvisionedResource`: the aggregate of the broker, one filling of a
//! resource slot. It has two constructors only,
//! [`ProvisionedResource::declare`] and [`ProvisionedResource::hydrate`]. Both
//! use the same validating builder, so a new attempt and a stored one obey the
//! same rules.

use serde_json::Value;

use crate::broker::phase::Phase;
use crate::catalog::parameters::ParameterValues;
use crate::ids::{
    BlueprintVersionId, BootstrapTokenId, CloudCredentialId, Partition, ProjectId,
    ProvisionedResourceId, ResourceId, Revision,
};
use crate::time::Timestamp;

/// Fields that do not form a valid ProvisionedResource. Such a row is
/// quarantined and stops nothing else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct InvalidAggregate {
    pub field: &'static str,
    pub problem: String,
}

impl InvalidAggregate {
    fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into() }
    }
}

/// What a declaration resolves to.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAttempt {
    pub id: ProvisionedResourceId,
    pub resource_id: ResourceId,
    pub project_id: ProjectId,
    pub blueprint_version_id: BlueprintVersionId,
    pub cloud_credential_id: CloudCredentialId,
    pub attempt: i32,
    pub parameter_values: ParameterValues,
    /// From its placement. Without one no loop claims it, and that is shown.
    pub partition: Partition,
    /// Another attempt is in use beside it.
    pub beside: Option<Beside>,
}

/// An attempt that is made while another one is in use, see [`crate::broker::surge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// What its node is called, since the other one may have the handle of the resource.
    pub hostname: String,
}

/// What a retry corrected: the attempt that follows is made of these.
#[derive(Debug, Clone, PartialEq)]
pub struct Correction {
    pub blueprint_version_id: BlueprintVersionId,
    pub parameter_values: ParameterValues,
}

/// How an attempt failed. Its row keeps this as long as it exists, whatever follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub at: Timestamp,
    /// What was observed then.
    pub observed: Value,
}

/// Every field as a row stores it. The phase is text: an unknown phase is a
/// fault of this row, and is never guessed.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAttempt {
    pub id: ProvisionedResourceId,
    pub resource_id: ResourceId,
    pub project_id: ProjectId,
    pub blueprint_version_id: BlueprintVersionId,
    pub cloud_credential_id: CloudCredentialId,
    pub attempt: i32,
    pub phase: String,
    pub phase_since: Timestamp,
    pub failure_reason: Option<String>,
    pub xr_name: String,
    pub bootstrap_token_id: Option<BootstrapTokenId>,
    pub parameter_values: ParameterValues,
    pub partition: Partition,
    pub in_use: bool,
    pub hostname: Option<String>,
    pub correction: Option<Correction>,
    pub deletion_requested_at: Option<Timestamp>,
    pub unsettled_since: Timestamp,
    pub absence_proven_at: Option<Timestamp>,
    pub abandoned_at: Option<Timestamp>,
    pub revision: Revision,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One declared piece of substrate on its way to Ready or to Deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvisionedResource {
    id: ProvisionedResourceId,
    resource_id: ResourceId,
    project_id: ProjectId,
    blueprint_version_id: BlueprintVersionId,
    cloud_credential_id: CloudCredentialId,
    attempt: i32,
    phase: Phase,
    phase_since: Timestamp,
    failure_reason: Option<String>,
    xr_name: String,
    bootstrap_token_id: Option<BootstrapTokenId>,
    parameter_values: ParameterValues,
    partition: Partition,
    in_use: bool,
    hostname: Option<String>,
    correction: Option<Correction>,
    deletion_requested_at: Option<Timestamp>,
    unsettled_since: Timestamp,
    absence_proven_at: Option<Timestamp>,
    abandoned_at: Option<Timestamp>,
    revision: Revision,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// The effect of a request for deletion.
#[derive(Debug, Clone, PartialEq)]
pub enum DeletionRequest {
    /// It enters the teardown phases now.
    Accepted(Box<ProvisionedResource>),
    /// It was being deleted already; nothing changes.
    AlreadyLeaving,
}

impl ProvisionedResource {
    /// A fresh attempt: Pending, named, without a token.
    pub fn declare(new: NewAttempt, now: Timestamp) -> Result<Self, InvalidAggregate> {
        let xr_name = derive_xr_name(new.id);
        Self::build(StoredAttempt {
            id: new.id,
            resource_id: new.resource_id,
            project_id: new.project_id,
            blueprint_version_id: new.blueprint_version_id,
            cloud_credential_id: new.cloud_credential_id,
            attempt: new.attempt,
            phase: Phase::Pending.as_str().to_owned(),
            phase_since: now,
            failure_reason: None,
            xr_name,
            bootstrap_token_id: None,
            parameter_values: new.parameter_values,
            partition: new.partition,
            in_use: new.beside.is_none(),
            hostname: new.beside.map(|beside| beside.hostname),
            correction: None,
            deletion_requested_at: None,
            unsettled_since: now,
            absence_proven_at: None,
            abandoned_at: None,
            revision: Revision::FIRST,
            created_at: now,
            updated_at: now,
        })
    }

    /// Rebuilds a stored attempt.
    pub fn hydrate(stored: StoredAttempt) -> Result<Self, InvalidAggregate> {
        Self::build(stored)
    }

    fn build(stored: StoredAttempt) -> Result<Self, InvalidAggregate> {
        let nil = [
            ("id", stored.id.is_nil()),
            ("resource_id", stored.resource_id.is_nil()),
            ("project_id", stored.project_id.is_nil()),
            ("blueprint_version_id", stored.blueprint_version_id.is_nil()),
            ("cloud_credential_id", stored.cloud_credential_id.is_nil()),
            ("bootstrap_token_id", stored.bootstrap_token_id.is_some_and(BootstrapTokenId::is_nil)),
            ("partition", stored.partition.is_nil()),
        ];
        if let Some((field, _)) = nil.into_iter().find(|(_, is_nil)| *is_nil) {
            return Err(InvalidAggregate::new(field, "must not be the nil id"));
        }
        let Some(phase) = Phase::parse(&stored.phase) else {
            let shown: String = stored.phase.chars().filter(|c| !c.is_control()).take(64).collect();
            return Err(InvalidAggregate::new(
                "status",
                format!("is `{shown}`, which is none of the eight phases this version knows"),
            ));
        };
        if stored.attempt < 1 {
            return Err(InvalidAggregate::new("attempt", "must be at least 1"));
        }
        if stored.xr_name.trim().is_empty() {
            return Err(InvalidAggregate::new("xr_name", "must not be empty"));
        }
        if stored.created_at.is_zero()
            || stored.updated_at.is_zero()
            || stored.phase_since.is_zero()
        {
            return Err(InvalidAggregate::new("created_at", "and the other times must be set"));
        }
        if stored.created_at > stored.updated_at {
            return Err(InvalidAggregate::new("updated_at", "must not be before created_at"));
        }
        if stored.deletion_requested_at.is_some() != phase.is_deletion() {
            return Err(InvalidAggregate::new(
                "deletion_requested_at",
                format!("must be set exactly in the deletion phases, and the phase is {phase}"),
            ));
        }
        let of_deleted = [
            ("absence_proven_at", stored.absence_proven_at),
            ("abandoned_at", stored.abandoned_at),
        ];
        if let Some((field, _)) = of_deleted.into_iter().find(|(_, at)| at.is_some())
            && phase != Phase::Deleted
        {
            let problem = format!("must be set in Deleted only, and the phase is {phase}");
            return Err(InvalidAggregate::new(field, problem));
        }
        if stored.revision < Revision::FIRST {
            return Err(InvalidAggregate::new("revision", "must be at least 1"));
        }
        Ok(Self {
            id: stored.id,
            resource_id: stored.resource_id,
            project_id: stored.project_id,
            blueprint_version_id: stored.blueprint_version_id,
            cloud_credential_id: stored.cloud_credential_id,
            attempt: stored.attempt,
            phase,
            phase_since: stored.phase_since,
            failure_reason: stored.failure_reason,
            xr_name: stored.xr_name,
            bootstrap_token_id: stored.bootstrap_token_id,
            parameter_values: stored.parameter_values,
            partition: stored.partition,
            in_use: stored.in_use,
            hostname: stored.hostname,
            correction: stored.correction,
            deletion_requested_at: stored.deletion_requested_at,
            unsettled_since: stored.unsettled_since,
            absence_proven_at: stored.absence_proven_at,
            abandoned_at: stored.abandoned_at,
            revision: stored.revision,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        })
    }

    /// Records a request for deletion. Idempotent; every phase but the deletion
    /// phases accepts it, Failed included.
    pub fn request_deletion(&self, now: Timestamp) -> DeletionRequest {
        if self.phase.is_deletion() {
            return DeletionRequest::AlreadyLeaving;
        }
        let mut leaving = self.advanced(Phase::Deregistering, now);
        leaving.deletion_requested_at = Some(now);
        DeletionRequest::Accepted(Box::new(leaving))
    }

    /// The aggregate after a phase decided by [`crate::broker::phase::next`].
    pub(crate) fn advanced(&self, phase: Phase, now: Timestamp) -> Self {
        let mut advanced = self.clone();
        if advanced.phase != phase {
            advanced.phase = phase;
            advanced.phase_since = now.max(self.phase_since);
        }
        advanced
    }

    pub(crate) fn failed_because(mut self, reason: Option<String>) -> Self {
        self.failure_reason = reason;
        self
    }

    /// See [`crate::broker::retry`].
    pub(crate) fn corrected(mut self, correction: Option<Correction>) -> Self {
        self.correction = correction;
        self
    }

    /// The same attempt of another declaration, see [`crate::broker::update`].
    pub(crate) fn redeclared(&self, declared: Correction) -> Self {
        let Correction { blueprint_version_id, parameter_values } = declared;
        Self { blueprint_version_id, parameter_values, ..self.clone() }
    }

    /// See [`crate::broker::surge`].
    pub(crate) fn brought_in_use(self) -> Self {
        Self { in_use: true, ..self }
    }

    /// See [`crate::broker::flapping`].
    pub(crate) fn unsettled(mut self, since: Timestamp) -> Self {
        self.unsettled_since = since;
        self
    }

    /// See [`crate::broker::deletion_verification`].
    pub(crate) fn with_absence_proven(&self, at: Option<Timestamp>) -> Self {
        Self { absence_proven_at: at, ..self.clone() }
    }

    /// See [`crate::broker::abandon`].
    pub(crate) fn abandoned(&self, now: Timestamp) -> Self {
        Self { abandoned_at: Some(now), ..self.advanced(Phase::Deleted, now) }
    }

    /// The aggregate as its next write leaves it.
    pub(crate) fn written(&self) -> Self {
        Self { revision: self.revision.next(), ..self.clone() }
    }

    pub(crate) fn with_bootstrap_token(&self, token: BootstrapTokenId) -> Self {
        Self { bootstrap_token_id: Some(token), ..self.clone() }
    }

    pub const fn id(&self) -> ProvisionedResourceId {
        self.id
    }
    pub const fn resource_id(&self) -> ResourceId {
        self.resource_id
    }
    pub const fn project_id(&self) -> ProjectId {
        self.project_id
    }
    pub const fn blueprint_version_id(&self) -> BlueprintVersionId {
        self.blueprint_version_id
    }
    pub const fn cloud_credential_id(&self) -> CloudCredentialId {
        self.cloud_credential_id
    }
    pub const fn attempt(&self) -> i32 {
        self.attempt
    }
    /// The partition that works on it; an attempt never changes its partition.
    pub const fn partition(&self) -> Partition {
        self.partition
    }
    /// Whether it is the resource's own: false for one that was made beside another and did
    /// not replace it (yet), see [`crate::broker::surge`].
    pub const fn is_in_use(&self) -> bool {
        self.in_use
    }
    /// What its node is called if that is not the handle of the resource. It stays for the
    /// life of the attempt, so that a rendering does not change.
    pub fn hostname(&self) -> Option<&str> {
        self.hostname.as_deref()
    }
    pub const fn phase(&self) -> Phase {
        self.phase
    }
    pub const fn phase_since(&self) -> Timestamp {
        self.phase_since
    }
    pub fn failure_reason(&self) -> Option<&str> {
        self.failure_reason.as_deref()
    }
    pub fn xr_name(&self) -> &str {
        &self.xr_name
    }
    pub const fn bootstrap_token_id(&self) -> Option<BootstrapTokenId> {
        self.bootstrap_token_id
    }
    pub const fn has_bootstrap_token(&self) -> bool {
        self.bootstrap_token_id.is_some()
    }
    pub const fn parameter_values(&self) -> &ParameterValues {
        &self.parameter_values
    }
    /// What the attempt that follows it is made of, if a retry corrected it.
    pub const fn correction(&self) -> Option<&Correction> {
        self.correction.as_ref()
    }
    pub const fn deletion_requested_at(&self) -> Option<Timestamp> {
        self.deletion_requested_at
    }
    /// Since when it has not been Ready for long enough; see [`crate::broker::flapping`].
    pub const fn unsettled_since(&self) -> Timestamp {
        self.unsettled_since
    }
    /// When deletion verification proved its absence. Nothing is purged before.
    pub const fn absence_proven_at(&self) -> Option<Timestamp> {
        self.absence_proven_at
    }
    /// When a person gave up proving its absence. What could not be proven gone is in
    /// its leak records.
    pub const fn abandoned_at(&self) -> Option<Timestamp> {
        self.abandoned_at
    }
    pub const fn revision(&self) -> Revision {
        self.revision
    }
    pub const fn created_at(&self) -> Timestamp {
        self.created_at
    }
    pub const fn updated_at(&self) -> Timestamp {
        self.updated_at
    }
}

/// The composite's `metadata.name`. Derived, never supplied: the id is unique,
/// immutable and already a DNS-1123 name, so nothing can collide.
pub fn derive_xr_name(id: ProvisionedResourceId) -> String {
    format!("pr-{id}")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::fixtures::{at, mk_attempt, mk_stored_attempt};

    #[test]
    fn a_declared_one_is_pending_and_named_after_its_id() {
        let attempt = mk_attempt(Phase::Pending);
        assert_eq!(attempt.phase(), Phase::Pending);
        assert_eq!(attempt.xr_name(), format!("pr-{}", attempt.id()));
        assert!(!attempt.has_bootstrap_token());
    }

    #[test]
    fn every_phase_hydrates() {
        for &phase in Phase::ALL {
            let stored = mk_stored_attempt(phase);
            assert_eq!(ProvisionedResource::hydrate(stored).unwrap().phase(), phase);
        }
    }

    /// Invariant 8: each fault is named, none is repaired in silence.
    #[test]
    fn a_row_that_breaks_an_invariant_is_refused_by_field() {
        let good = || mk_stored_attempt(Phase::Ready);
        let nil = Uuid::nil();
        let table: Vec<(&str, StoredAttempt)> = vec![
            ("id", StoredAttempt { id: ProvisionedResourceId::new(nil), ..good() }),
            ("resource_id", StoredAttempt { resource_id: ResourceId::new(nil), ..good() }),
            ("project_id", StoredAttempt { project_id: ProjectId::new(nil), ..good() }),
            (
                "blueprint_version_id",
                StoredAttempt { blueprint_version_id: BlueprintVersionId::new(nil), ..good() },
            ),
            (
                "cloud_credential_id",
                StoredAttempt { cloud_credential_id: CloudCredentialId::new(nil), ..good() },
            ),
            (
                "bootstrap_token_id",
                StoredAttempt { bootstrap_token_id: Some(BootstrapTokenId::new(nil)), ..good() },
            ),
            ("partition", StoredAttempt { partition: Partition::new(nil), ..good() }),
            ("status", StoredAttempt { phase: "Archived".to_owned(), ..good() }),
            ("attempt", StoredAttempt { attempt: 0, ..good() }),
            ("xr_name", StoredAttempt { xr_name: "  ".to_owned(), ..good() }),
            ("created_at", StoredAttempt { created_at: Timestamp::ZERO, ..good() }),
            ("created_at", StoredAttempt { updated_at: Timestamp::ZERO, ..good() }),
            ("updated_at", StoredAttempt { created_at: at(9_999), ..good() }),
            (
                "deletion_requested_at",
                StoredAttempt { deletion_requested_at: Some(at(5)), ..good() },
            ),
            (
                "deletion_requested_at",
                StoredAttempt {
                    deletion_requested_at: None,
                    ..mk_stored_attempt(Phase::Deregistering)
                },
            ),
            ("absence_proven_at", StoredAttempt { absence_proven_at: Some(at(5)), ..good() }),
            ("abandoned_at", StoredAttempt { abandoned_at: Some(at(5)), ..good() }),
            ("revision", StoredAttempt { revision: Revision(0), ..good() }),
        ];
        for (field, stored) in table {
            let error = ProvisionedResource::hydrate(stored).unwrap_err();
            assert_eq!(error.field, field, "{error}");
        }
    }

    #[test]
    fn asking_for_deletion_is_idempotent() {
        for &phase in Phase::ALL {
            let attempt = mk_attempt(phase);
            match attempt.request_deletion(at(100)) {
                DeletionRequest::Accepted(leaving) => {
                    assert!(!phase.is_deletion());
                    assert_eq!(leaving.phase(), Phase::Deregistering);
                    assert_eq!(leaving.deletion_requested_at(), Some(at(100)));
                    assert_eq!(leaving.request_deletion(at(200)), DeletionRequest::AlreadyLeaving);
                }
                DeletionRequest::AlreadyLeaving => assert!(phase.is_deletion()),
            }
        }
    }
}
