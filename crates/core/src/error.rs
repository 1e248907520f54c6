//! The error kinds: the closed set of reasons why Slipway says no, each with a
//! stable code. A [`Refusal`] is one of them with its text; the HTTP status
//! is chosen in the server, at the last step.

use std::fmt;

use serde_json::Value;

use crate::closed_set::closed_set;
use crate::ids::InvalidId;
use crate::text::InvalidText;

closed_set!(
    /// Why something was refused. Clients branch on [`ErrorKind::code`].
    ErrorKind {
        InvalidInput => "invalid_input",
        ProvisionedResourceNotFound => "provisioned_resource_not_found",
        BlueprintNotFound => "blueprint_not_found",
        CloudNotFound => "cloud_not_found",
        CredentialNotFound => "credential_not_found",
        AssignmentNotFound => "assignment_not_found",
        ParameterValuesInvalid => "parameter_values_invalid",
        NamespaceNotReady => "namespace_not_ready",
        NodeDeregistrationFailed => "node_deregistration_failed",

        ProjectNotFound => "project_not_found",
        CredentialNotAssigned => "credential_not_assigned",
        ProviderKindMismatch => "provider_kind_mismatch",
        /// No engine on the project's cluster can make what the blueprint describes.
        EngineNotServed => "engine_not_served",
        ResourceNotFound => "resource_not_found",
        NodeNotFound => "node_not_found",
        DeletionNotFound => "deletion_not_found",
        LeakNotFound => "leak_not_found",
        RouteNotFound => "route_not_found",
        MethodNotAllowed => "method_not_allowed",
        HandleTaken => "handle_taken",
        /// The row was written since it was read.
        RevisionStale => "revision_stale",
        /// Another worker claimed the row since.
        ClaimLost => "claim_lost",
        /// The events after this cursor are no longer kept.
        CursorExpired => "cursor_expired",
        SubscriptionNotFound => "subscription_not_found",
        NothingToForce => "nothing_to_force",
        NothingToRetry => "nothing_to_retry",
        /// The tenant does not wait for a person.
        NothingToResume => "nothing_to_resume",
        /// Failed for good: an update would not be applied, a retry takes the same changes.
        ResourceFailed => "resource_failed",
        /// Only another attempt can have another value.
        ParameterImmutable => "parameter_immutable",
        /// The objects of this version are of another type.
        VersionNeedsReplace => "version_needs_replace",
        /// The blueprint does not allow two attempts at once.
        SurgeNotAllowed => "surge_not_allowed",
        /// What is not Ready is replaced with one attempt at a time.
        SurgeNeedsReady => "surge_needs_ready",
        /// Two attempts are there; what is asked for has to wait, or belongs to the second one.
        SurgeUnderWay => "surge_under_way",
        /// There is no second attempt, or it is in use already.
        NothingToAbort => "nothing_to_abort",
        /// Not a machine that people boot, or nobody requested its deletion.
        NothingToConfirm => "nothing_to_confirm",
        /// Its node still reports, or is being drained.
        NothingToReenrol => "nothing_to_reenrol",
        /// Its deletion was not requested, or can still end in order.
        NotAbandonable => "not_abandonable",
        /// Nothing holds its teardown past the deadline that could keep its external object.
        NotOrphanable => "not_orphanable",
        /// The output of its node is kept elsewhere, or cannot be read.
        LogsUnavailable => "logs_unavailable",
        /// No freeze is in force, or nothing is to be resumed.
        NothingToLift => "nothing_to_lift",
        /// Its deletion is forbidden, or that of something in it.
        Protected => "protected",
        /// The caller deleted too much in too short a time.
        DeletionBrake => "deletion_brake",
        /// A second person has to approve the plan of the deletion.
        ApprovalRequired => "approval_required",
        /// The second person is the first one.
        SamePerson => "same_person",
        /// The deletion began already, or is over.
        NotCancellable => "not_cancellable",
        PlanNotFound => "plan_not_found",
        /// The plan is of another deletion than the one that names it.
        PlanMismatch => "plan_mismatch",
        /// What would go is not what the plan read.
        PlanStale => "plan_stale",
        PlanExpired => "plan_expired",
        /// Another deletion came from the plan.
        PlanUsed => "plan_used",
        /// The deletion is not done, or its members are not kept any more.
        NotRestorable => "not_restorable",
        /// A name is taken, or something that is needed is deleted itself.
        RestoreConflict => "restore_conflict",
        /// A resource can only be restored as a new attempt.
        SubstrateGone => "substrate_gone",
        /// Something still needs what would be purged.
        PurgeWithheld => "purge_withheld",
        /// The project is being deleted, or will be.
        ProjectLeaving => "project_leaving",
        /// A deletion of it is scheduled or under way.
        Leaving => "leaving",
        DrainNotRequested => "drain_not_requested",
        /// The object still exists, or cannot be searched for.
        LeakNotGone => "leak_not_gone",
        LeakNotRemovable => "leak_not_removable",
        LeakResolved => "leak_resolved",

        RolloutNotFound => "rollout_not_found",
        /// It ended, or is on its way back.
        RolloutEnded => "rollout_ended",
        /// Another one of the same subject has not ended.
        RolloutUnderWay => "rollout_under_way",
        /// It would change nothing.
        RolloutEmpty => "rollout_empty",

        GeneratorNotFound => "generator_not_found",
        StackNotFound => "stack_not_found",
        TemplateNotFound => "template_not_found",
        AgentNotFound => "agent_not_found",
        DeploymentObjectNotFound => "deployment_object_not_found",
        /// The content has a Secret with values, and its generator takes none.
        SecretNotAccepted => "secret_not_accepted",
        /// An agent would remove what it is to let go of.
        KeepNotSupported => "keep_not_supported",
        /// The agent is not registered with the generator of the stack.
        TargetGeneratorMismatch => "target_generator_mismatch",
        /// The label, annotation, registration or target is there already.
        EntryExists => "entry_exists",
        /// There is no such label, annotation, registration, target or report.
        EntryNotFound => "entry_not_found",
        /// What Fleet's protocol answers for a name that is taken and an entry that exists.
        UniqueViolation => "unique_violation",
        /// A whole document was sent, and in it something that cannot be changed is not as it is.
        FieldNotSettable => "field_not_settable",
        /// The template has a label or an annotation that the stack does not have.
        TemplateMismatch => "template_mismatch",
        /// The template made no content from these parameters.
        TemplateFailed => "template_failed",
        /// The protocol has it, and this server does not.
        NotOffered => "not_offered",

        TenantProfileNotFound => "tenant_profile_not_found",
        /// Tenants of the profile are not purged.
        TenantProfileInUse => "tenant_profile_in_use",
        /// The settings of a profile cannot be used.
        TenantProfileInvalid => "tenant_profile_invalid",
        TenantNotFound => "tenant_not_found",
        TenantJobNotFound => "job_not_found",
        /// A job of the tenant has not ended.
        TenantBusy => "tenant_busy",
        /// The tenant is there already.
        TenantReady => "tenant_ready",
        /// The last job of the tenant failed.
        TenantFailed => "tenant_failed",

        WorkspaceNotFound => "workspace_not_found",
        GroupNotFound => "group_not_found",
        ServerNotFound => "server_not_found",
        /// Servers of the workspace are not gone.
        WorkspaceNotEmpty => "workspace_not_empty",
        /// A workspace owns the resource, and only its verbs change it.
        OwnedByWorkspace => "owned_by_workspace",
        /// A control plane is not scaled down.
        ControlPlaneImmutable => "control_plane_immutable",
        /// The declaration locks the server.
        DeleteLocked => "delete_locked",
        /// The group would have fewer Ready servers than it must keep.
        ScaleMinViolation => "scale_min_violation",
        /// The group would have more servers than it may.
        ScaleMaxViolation => "scale_max_violation",
        /// Too few control planes would be Ready.
        QuorumViolation => "quorum_violation",
        /// Control planes are replaced one at a time.
        ReplacementUnderWay => "replacement_under_way",
        /// The provider's list could not be read, or is too old.
        InventoryUnavailable => "inventory_unavailable",
        /// The provider's list contradicts our rows.
        InventoryMismatch => "inventory_mismatch",
        /// Workers would have no load balancer any more.
        LastLoadBalancer => "last_load_balancer",
        /// A live server keeps its role.
        RoleImmutable => "role_immutable",
        /// Another workspace of the project names its servers alike.
        HostnamePatternTaken => "hostname_pattern_taken",
        /// The workspace is paused already, or is not.
        NothingToPause => "nothing_to_pause",

        ClusterNotFound => "cluster_not_found",
        BlueprintVersionNotFound => "blueprint_version_not_found",
        LabelNotFound => "label_not_found",
        NameTaken => "name_taken",
        ProjectNotEmpty => "project_not_empty",
        CloudInUse => "cloud_in_use",
        /// Resources are made from the blueprint.
        BlueprintInUse => "blueprint_in_use",
        /// Projects are placed on the cluster, or something lives there.
        ClusterInUse => "cluster_in_use",
        CredentialInUse => "credential_in_use",
        /// Resources of the project are made with the credential.
        AssignmentInUse => "assignment_in_use",
        /// The project owns resources, so its cluster cannot change.
        ClusterAssignmentImmutable => "cluster_assignment_immutable",
        ParameterSchemaInvalid => "parameter_schema_invalid",
        XrdInvalid => "xrd_invalid",
        CompositionInvalid => "composition_invalid",
        /// XRD, Composition and metadata do not belong together.
        BlueprintPairInvalid => "blueprint_pair_invalid",
        /// The version was published with different content.
        BlueprintVersionExists => "blueprint_version_exists",
        BlueprintVersionRetired => "blueprint_version_retired",
        /// The project uses another credential of this provider.
        ProviderConfigConflict => "provider_config_conflict",
        IdempotencyKeyReused => "idempotency_key_reused",

        /// Another source wrote the field, with another value.
        FieldConflict => "field_conflict",
        /// The field stays as it was made.
        FieldImmutable => "field_immutable",
        /// A document that it depends on was not applied.
        DependencyFailed => "dependency_failed",
        /// Another document of the request is about the same object.
        DocumentDuplicate => "document_duplicate",
        /// No source of this name declared anything.
        SourceNotFound => "source_not_found",

        KeyNotFound => "key_not_found",
        /// Revoked or expired: there is nothing to rotate.
        KeyNotUsable => "key_not_usable",
        /// Nobody could administer the installation afterwards.
        LastAdminKey => "last_admin_key",
        TokenNotFound => "token_not_found",
        /// Used up or revoked already.
        TokenNotRevocable => "token_not_revocable",

        PublicKeyInvalid => "public_key_invalid",
        TokenInvalid => "token_invalid",
        TokenConsumed => "token_consumed",
        TokenExpired => "token_expired",
        TokenRevoked => "token_revoked",
        ProjectMismatch => "project_mismatch",
        KindMismatch => "kind_mismatch",
        /// The nonce was used by another registration of the project.
        NonceCollision => "nonce_collision",
        /// Another node of the project, which is still registered, has the key.
        PublicKeyTaken => "public_key_taken",
        /// A field of a registration breaks a rule.
        RegistrationInvalid => "registration_invalid",
        /// The project's mesh has no address left for another node.
        PoolExhausted => "pool_exhausted",
        /// Nodes use the mesh, so it cannot change.
        MeshInUse => "mesh_in_use",
        /// Failed or being deleted: no node may enrol for it.
        NotEnrolling => "not_enrolling",

        Unauthenticated => "unauthenticated",
        Forbidden => "forbidden",
        /// The key exceeded its rate limit.
        RateLimited => "rate_limited",
        PayloadTooLarge => "payload_too_large",
        /// The body has a content encoding that is not read here.
        EncodingUnsupported => "encoding_unsupported",
        /// The body did not arrive in time.
        RequestTimeout => "request_timeout",
        /// The row breaks an invariant and is quarantined until it is repaired.
        RowInvalid => "row_invalid",
        /// A database or a queue is unavailable; the same call may work later.
        Unavailable => "unavailable",
        /// The database accepts reads and no writes.
        DatabaseReadOnly => "database_read_only",
        /// The database is out of space.
        DatabaseFull => "database_full",
        Internal => "internal",
    }
);

impl ErrorKind {
    pub const fn code(self) -> &'static str {
        self.as_str()
    }
}

/// A decision not to do something: what happened, to what, and what to do.
/// Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub kind: ErrorKind,
    pub message: String,
    /// The input field at fault, where there is one.
    pub field: Option<String>,
    pub details: Option<Value>,
    /// Further faults of the same input; none of them has others itself. Boxed, since
    /// almost no refusal has any, and every error that carries one would be larger.
    #[expect(clippy::box_collection, reason = "one word instead of three")]
    others: Option<Box<Vec<Refusal>>>,
}

impl Refusal {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), field: None, details: None, others: None }
    }

    /// Every fault of an input as one refusal, in this order; the first names
    /// its kind. A field is named once. Fine if there is none.
    pub fn all(faults: impl IntoIterator<Item = Self>) -> Result<(), Self> {
        let mut all: Vec<Self> = Vec::new();
        for mut fault in faults {
            let others = fault.others.take().map(|others| *others).unwrap_or_default();
            for fault in std::iter::once(fault).chain(others) {
                let known = fault.field.is_some() && all.iter().any(|one| one.field == fault.field);
                if !known {
                    all.push(fault);
                }
            }
        }
        let mut all = all.into_iter();
        match all.next() {
            None => Ok(()),
            Some(first) if all.len() == 0 => Err(first),
            Some(first) => Err(Self { others: Some(Box::new(all.collect())), ..first }),
        }
    }

    /// Further faults of the same input.
    pub fn others(&self) -> &[Self] {
        self.others.as_deref().map_or(&[], Vec::as_slice)
    }

    /// This fault and the others.
    pub fn faults(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.others())
    }

    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    pub fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    pub fn invalid(field: impl Into<String>, problem: impl fmt::Display) -> Self {
        let field = field.into();
        Self::new(ErrorKind::InvalidInput, format!("`{field}` {problem}")).at(field)
    }
}

/// The value, or `None` and one more fault.
pub fn or_fault<T, E: Into<Refusal>>(
    checked: Result<T, E>,
    faults: &mut Vec<Refusal>,
) -> Option<T> {
    checked.map_err(|fault| faults.push(fault.into())).ok()
}

impl From<InvalidText> for Refusal {
    fn from(error: InvalidText) -> Self {
        Self::new(ErrorKind::InvalidInput, error.to_string()).at(error.field)
    }
}

impl From<InvalidId> for Refusal {
    fn from(error: InvalidId) -> Self {
        Self::new(ErrorKind::InvalidInput, error.to_string()).at(error.kind)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn faults_become_one_refusal_that_names_each_field_once() {
        assert_eq!(Refusal::all([]), Ok(()));
        let inner = Refusal::all([Refusal::invalid("b", "is wrong"), Refusal::invalid("c", "too")]);
        let refusal = Refusal::all([
            Refusal::invalid("a", "is wrong"),
            inner.unwrap_err(),
            Refusal::invalid("b", "is wrong in another way"),
        ])
        .unwrap_err();
        let fields: Vec<_> = refusal.faults().map(|fault| fault.field.as_deref()).collect();
        assert_eq!(fields, [Some("a"), Some("b"), Some("c")]);
        assert!(refusal.others().iter().all(|fault| fault.others.is_none()));
    }

    #[test]
    fn codes_are_unique_and_snake_case() {
        let codes: BTreeSet<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
        for code in codes {
            assert!(code.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{code}");
        }
    }
}
