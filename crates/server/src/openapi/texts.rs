//! What the texts of the documents are: times, ids, and members of closed sets. The
//! types of the wire know only texts; with this, a generated client has types.

use serde_json::{Value, json};
use slipway_app::deletion::plan;
use slipway_core::access::api_key::KeyState;
use slipway_core::access::role::Role;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::phase::Phase;
use slipway_core::catalog::blueprint_version::{
    CompositeScope, Engine, InjectionStrategy, MeshRole,
};
use slipway_core::catalog::label::LabelSource;
use slipway_core::deletion::plan::StepAction;
use slipway_core::deletion::record::DeletionState;
use slipway_core::deletion::{leak, purge};
use slipway_core::error::ErrorKind;
use slipway_core::files::document::DocumentKind;
use slipway_core::fleet::agent::AgentStatus;
use slipway_core::fleet::overview::ActorType;
use slipway_core::fleet::report::{HealthStatus, ReportStatus};
use slipway_core::nodes::node::{DeregisteredHow, Reachability};
use slipway_core::nodes::token::TokenKind;
use slipway_core::operations::control::Mode;
use slipway_core::operations::explanation::ExplainedKind;
use slipway_core::placement::definitions::DefinitionPhase;
use slipway_core::placement::namespace::{NamespacePhase, ProviderPhase};
use slipway_core::rollouts::record::{MemberState, Purpose, RolloutState};
use slipway_core::subject::SubjectKind;
use slipway_core::tenants::job::JobState;
use slipway_core::tenants::task::Found;
use slipway_core::topology::role::NodeRole;

/// Every closed set, by the name of its schema.
pub(super) fn sets() -> Vec<(&'static str, Value)> {
    vec![
        ("ActorType", json!(ActorType::ALL)),
        ("AgentStatus", json!(AgentStatus::ALL)),
        ("BlockerCode", json!(BlockerCode::ALL)),
        ("BlockerOwner", json!(["operator", "platform"])),
        ("CompositeScope", json!(CompositeScope::ALL)),
        ("DefinitionPhase", json!(DefinitionPhase::ALL)),
        ("DeletableKind", json!(plan::KINDS)),
        ("DeletionState", json!(DeletionState::ALL)),
        ("DeregisteredHow", json!(DeregisteredHow::ALL)),
        ("DocumentKind", json!(DocumentKind::ALL)),
        ("DocumentOutcome", json!(["created", "changed", "unchanged", "refused"])),
        ("Engine", json!(Engine::ALL)),
        ("ErrorCode", json!(ErrorKind::ALL)),
        ("ExplainedKind", json!(ExplainedKind::ALL)),
        ("HealthStatus", json!(HealthStatus::ALL)),
        ("InjectionStrategy", json!(InjectionStrategy::ALL)),
        ("KeyState", json!(KeyState::ALL)),
        ("LabelSource", json!(LabelSource::ALL)),
        ("LeakKind", json!(leak::kinds())),
        ("LeakState", json!(["open", "resolved"])),
        ("MeshRole", json!(MeshRole::ALL)),
        ("Mode", json!(Mode::NAMES)),
        ("NamespacePhase", json!(NamespacePhase::ALL)),
        ("NodeRole", json!(NodeRole::ALL)),
        ("OfferedEngine", json!(Engine::OFFERED)),
        ("Phase", json!(Phase::ALL)),
        ("PlanStepAction", json!(StepAction::ALL)),
        (
            "PlannedAction",
            json!(["in_place", "replace_surge_first", "replace", "delete", "blocked"]),
        ),
        ("ProviderPhase", json!(ProviderPhase::ALL)),
        ("PurgeReasonCode", json!(purge::REASONS)),
        ("Reachability", json!(Reachability::ALL)),
        ("ReportStatus", json!(ReportStatus::ALL)),
        ("Role", json!(Role::ALL)),
        ("RolloutMemberState", json!(MemberState::ALL)),
        ("RolloutPurpose", json!(Purpose::ALL)),
        ("RolloutState", json!(RolloutState::ALL)),
        ("SubjectKind", json!(SubjectKind::ALL)),
        ("TenantEngine", json!(["postgres", "sqlite"])),
        ("TenantJobState", json!(JobState::ALL)),
        ("TenantRepairFound", json!(Found::ALL)),
        ("TokenKind", json!(TokenKind::ALL)),
        ("TokenState", json!(["consumed", "revoked", "usable", "expired"])),
        ("WithheldKind", json!(["apply", "delete", "drain", "unknown"])),
    ]
}

/// The closed set of a property.
fn set(document: &str, property: &str) -> Option<&'static str> {
    Some(match (document, property) {
        (
            "Attempt" | "AttemptSummary" | "Resource" | "SecondAttempt" | "Server"
            | "WithheldAction",
            "phase",
        ) => "Phase",
        ("BlueprintDefinitions", "phase") => "DefinitionPhase",
        ("ProviderStatus", "phase") => "ProviderPhase",
        (_, "namespace_phase") => "NamespacePhase",
        ("CreateBlueprint" | "CreateCluster" | "BlueprintSpec" | "ClusterSpec", "engine") => {
            "OfferedEngine"
        }
        ("Document" | "ObjectReference", "kind") => "DocumentKind",
        ("AppliedDocument", "outcome") => "DocumentOutcome",
        ("DocumentRefusal" | "PlanObstacle", "code") => "ErrorCode",
        ("BlueprintVersionSpec", "injectionStrategy") => "InjectionStrategy",
        ("BlueprintVersionSpec", "meshRole") => "MeshRole",
        ("TenantProfile", "engine") => "TenantEngine",
        ("Tenant" | "TenantJob", "state") | ("TenantJobLine", "from" | "to") => "TenantJobState",
        ("RefusedTenant", "code") => "ErrorCode",
        ("RepairTenant" | "RepairTenants", "found") => "TenantRepairFound",
        (_, "engine") => "Engine",
        (
            "Group" | "GroupSpec" | "PlannedGroup" | "Server" | "ServerSpec" | "TeardownGroup",
            "role",
        ) => "NodeRole",
        (_, "role") => "Role",
        ("Agent" | "UpdateAgent" | "FleetAgentRecord", "status") => "AgentStatus",
        ("AgentEvent" | "NewAgentEvent", "status") => "ReportStatus",
        (
            "DeploymentHealth" | "DeploymentObjectHealthSummary" | "DeploymentObjectHealthUpdate",
            "status",
        )
        | (_, "overall_status") => "HealthStatus",
        ("AuditLog", "actor_type") => "ActorType",
        ("AuditLog", "resource_type") => "SubjectKind",
        ("ApiKey", "state") => "KeyState",
        ("Deletion" | "Purge", "state") => "DeletionState",
        ("Rollout", "state") => "RolloutState",
        ("Rollout", "purpose") => "RolloutPurpose",
        ("Rollout", "subject_kind") | ("RolloutMember", "kind") => "SubjectKind",
        ("RolloutMember", "state") => "RolloutMemberState",
        ("Leak", "state") => "LeakState",
        ("Token", "state") => "TokenState",
        ("PlanDeletion", "kind") => "DeletableKind",
        (
            "AuditEntry" | "Deletion" | "DeletionMember" | "DeletionPlan" | "NextDeletion"
            | "DeletionSetting" | "Protection" | "Purge" | "PurgeDeletions" | "PurgedDeletion"
            | "RestoreConflict" | "RestoredMember",
            "kind",
        ) => "SubjectKind",
        ("Explanation", "kind") => "ExplainedKind",
        ("Leak" | "LeakSuspicion", "kind") => "LeakKind",
        ("Token" | "IssueToken", "kind") => "TokenKind",
        (_, "injection_strategy" | "injectionStrategy") => "InjectionStrategy",
        (_, "mesh_role" | "meshRole") => "MeshRole",
        ("CompositeType", "scope") => "CompositeScope",
        ("EffectiveLabel", "source") => "LabelSource",
        ("Node", "reachability") => "Reachability",
        ("Node", "deregistered_how") => "DeregisteredHow",
        ("Control", "mode") => "Mode",
        ("Blocker", "code") => "BlockerCode",
        ("Blocker", "owner") => "BlockerOwner",
        ("Problem" | "FieldError", "code") => "ErrorCode",
        ("PurgeReason", "code") => "PurgeReasonCode",
        ("PlanStage", "action") => "PlanStepAction",
        ("PlannedServer", "action") => "PlannedAction",
        ("WithheldAction", "action") => "WithheldKind",
        _ => return None,
    })
}

fn format(property: &str) -> Option<&'static str> {
    let is_time = property.ends_with("_at")
        || property == "scheduled_for"
        || property.ends_with("_since")
        || property.ends_with("_until")
        || property.ends_with("_ts")
        || ["at", "since", "until", "counts_from", "deadline", "last_heartbeat", "timestamp", "ts"]
            .contains(&property);
    // The caller may choose the correlation id.
    let is_id = (["id", "retry_of", "used_by", "under_way"].contains(&property)
        || property.ends_with("_id"))
        && property != "correlation_id";
    match (is_time, is_id) {
        (true, _) => Some("date-time"),
        (_, true) => Some("uuid"),
        _ => None,
    }
}

/// Adds format or set to every text of a document, below `allOf` too.
pub(super) fn describe(document: &str, schema: &mut Value) {
    if let Some(parts) = schema.get_mut("allOf").and_then(Value::as_array_mut) {
        parts.iter_mut().for_each(|part| describe(document, part));
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (property, of_property) in properties.into_iter().flatten() {
        let is_nullable = of_property["type"].is_array();
        if !is_text(of_property) {
            continue;
        }
        if let Some(set) = set(document, property) {
            let reference = json!({ "$ref": format!("#/components/schemas/{set}") });
            let description = of_property.get("description").cloned();
            *of_property = match is_nullable {
                true => json!({ "oneOf": [{ "type": "null" }, reference] }),
                false => reference,
            };
            if let Some(description) = description {
                of_property["description"] = description;
            }
        } else if let Some(format) = format(property) {
            of_property["format"] = json!(format);
        }
    }
}

/// Whether a property is a text, or a text or null.
pub(super) fn is_text(schema: &Value) -> bool {
    match &schema["type"] {
        Value::String(kind) => kind == "string",
        Value::Array(kinds) => kinds.contains(&json!("string")),
        _ => false,
    }
}
