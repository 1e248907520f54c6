//! Builders for tests: one valid thing of each kind, to be varied by the test.

pub mod catalog;
pub mod fleet;
pub mod tenants;
pub mod topology;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::access::audit::Actor;
use crate::broker::attempt::{ProvisionedResource, StoredAttempt, derive_xr_name};
use crate::broker::decide::Facts;
use crate::broker::declare::Declaration;
use crate::broker::observation::{CompositeReport, LiveComposite};
use crate::broker::phase::Phase;
use crate::broker::resource::Resource;
use crate::broker::snapshot::{CredentialView, DeclareSnapshot, ProviderFacts, ResourceSnapshot};
use crate::catalog::blueprint_version::{BlueprintVersion, Engine, InjectionStrategy, MeshRole};
use crate::catalog::parameters::{Parameter, ParameterSchema, ParameterType, ParameterValues};
use crate::deletion::record::{Deletion, DeletionState, StackFacts};
use crate::ids::{
    BlueprintId, BlueprintVersionId, BootstrapTokenId, ClaimToken, CloudCredentialId, CloudId,
    ClusterId, DeletionId, NodeId, ProjectId, ProvisionedResourceId, ResourceId, Revision,
};
use crate::nodes::enrol::{EnrolSnapshot, Enrolment};
use crate::nodes::mesh::{MeshAddress, MeshCidr, MeshPool};
use crate::nodes::node::{CAPABILITY_DRAIN, Node, Reported};
use crate::nodes::token::{BootstrapToken, Carried, SecretHash, TokenKind, TokenLifetimes};
use crate::operations::control::{Freeze, Mode};
use crate::placement::namespace::{NamespacePhase, Placement};
use crate::text::{Handle, Labels};
use crate::time::Timestamp;

/// Seconds since the epoch.
pub const fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

pub const fn uuid(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub fn mk_actor() -> Actor {
    Actor::new("key:test")
}

pub fn mk_stored_attempt(phase: Phase) -> StoredAttempt {
    let id = ProvisionedResourceId::new(uuid(10));
    StoredAttempt {
        id,
        resource_id: ResourceId::new(uuid(11)),
        project_id: ProjectId::new(uuid(12)),
        blueprint_version_id: BlueprintVersionId::new(uuid(13)),
        cloud_credential_id: CloudCredentialId::new(uuid(14)),
        attempt: 1,
        phase: phase.as_str().to_owned(),
        phase_since: at(900),
        failure_reason: None,
        xr_name: derive_xr_name(id),
        bootstrap_token_id: None,
        parameter_values: ParameterValues::default(),
        partition: mk_placement().cluster_id.into(),
        in_use: true,
        hostname: None,
        correction: None,
        deletion_requested_at: phase.is_deletion().then_some(at(900)),
        unsettled_since: at(900),
        absence_proven_at: None,
        abandoned_at: None,
        revision: Revision(5),
        created_at: at(800),
        updated_at: at(900),
    }
}

pub fn mk_attempt(phase: Phase) -> ProvisionedResource {
    ProvisionedResource::hydrate(mk_stored_attempt(phase)).expect("a fixture is valid")
}

pub fn mk_blueprint() -> BlueprintVersion {
    BlueprintVersion {
        id: BlueprintVersionId::new(uuid(13)),
        blueprint_id: BlueprintId::new(uuid(15)),
        slug: "local-node".to_owned(),
        version: "v1".to_owned(),
        engine: Engine::Local,
        composite_type: None,
        cloud_tags: false,
        own_provider_config: false,
        composition_name: None,
        surge: false,
        parameter_schema: ParameterSchema::new(vec![Parameter {
            name: "busy_seconds".to_owned(),
            kind: ParameterType::Integer,
            required: false,
            default: Some(json!(0)),
            immutable: false,
        }])
        .expect("a fixture is valid"),
        injection_strategy: InjectionStrategy::CloudInitUserData,
        mesh_role: MeshRole::Node,
        provider_kinds: vec!["local".to_owned()],
    }
}

pub fn mk_placement() -> Placement {
    Placement {
        cluster_id: ClusterId::new(uuid(16)),
        cluster: "local".to_owned(),
        engine: Engine::Local,
        access: None,
        namespace: "slipway-project-x".to_owned(),
        namespace_phase: NamespacePhase::Ready,
        substrate_uid: None,
        providers: Vec::new(),
        problems: Vec::new(),
    }
}

pub fn mk_provider_facts() -> ProviderFacts {
    ProviderFacts {
        cloud_id: CloudId::new(uuid(17)),
        provider: "hetzner".to_owned(),
        endpoint: Map::new(),
        credential_id: CloudCredentialId::new(uuid(14)),
        kv_mount: "secret".to_owned(),
        kv_path: "clouds/billing".to_owned(),
        labels: BTreeMap::new(),
    }
}

pub fn mk_snapshot(phase: Phase) -> ResourceSnapshot {
    let attempt = mk_attempt(phase);
    ResourceSnapshot {
        now: at(1_000),
        resource: Resource {
            id: attempt.resource_id(),
            project_id: attempt.project_id(),
            handle: Handle::parse("web-1").expect("a fixture is valid"),
            labels: Labels::default(),
            revision: Revision(2),
            deletion_id: None,
            surge: None,
            owner: None,
            deleted_at: None,
            created_at: at(800),
            updated_at: at(800),
        },
        latest: attempt.attempt(),
        other: None,
        attempt,
        blueprint: Arc::new(mk_blueprint()),
        placement: Some(mk_placement()),
        provider: None,
        read_as: None,
        token: None,
        presented: None,
        node: None,
        deletion: None,
        blockers: Vec::new(),
        claim_token: ClaimToken(3),
        failures: 0,
        observed: None,
        due_at: None,
        kept: Vec::new(),
        waits_for: Vec::new(),
    }
}

pub fn mk_token(issued: i64, expires: i64, cap: i64) -> BootstrapToken {
    BootstrapToken {
        id: BootstrapTokenId::new(uuid(20)),
        project_id: ProjectId::new(uuid(12)),
        provisioned_resource_id: ProvisionedResourceId::new(uuid(10)),
        kind: TokenKind::Node,
        hash: SecretHash::of(b"token"),
        issued_at: at(issued),
        expires_at: at(expires),
        hard_expires_at: at(cap),
        consumed: None,
        revoked_at: None,
        issued_by: None,
    }
}

pub fn mk_node() -> Node {
    Node {
        id: NodeId::new(uuid(30)),
        project_id: ProjectId::new(uuid(12)),
        resource_id: ResourceId::new(uuid(11)),
        provisioned_resource_id: ProvisionedResourceId::new(uuid(10)),
        bootstrap_token_id: BootstrapTokenId::new(uuid(20)),
        hostname: "web-1".to_owned(),
        public_key: [1; 32],
        key_hash: Some(SecretHash::of(b"key")),
        former_key_hash: None,
        capabilities: vec![CAPABILITY_DRAIN.to_owned()],
        mesh: MeshAddress { host: 2, ip: IpAddr::from([100, 64, 0, 2]) },
        reported: Reported::default(),
        revision: Revision::FIRST,
        registered_at: at(950),
        last_heartbeat_at: None,
        drain: None,
        deregistration: None,
    }
}

/// A resource that a token leads to, in an empty mesh.
pub fn mk_enrol_snapshot(resource: ResourceSnapshot) -> EnrolSnapshot {
    let pool = MeshPool { cidr: MeshCidr::DEFAULT, free: Some(2) };
    EnrolSnapshot { resource, pool, nonce_taken: false, public_key_taken: false }
}

pub fn mk_enrolment() -> Enrolment {
    Enrolment {
        token_hash: SecretHash::of(b"token"),
        kind: TokenKind::Node,
        public_key: [1; 32],
        hostname: "web-1".to_owned(),
        capabilities: vec![CAPABILITY_DRAIN.to_owned()],
        nonce: Some("n".to_owned()),
        project_id: None,
        resource_handle: None,
        requested_resource_id: None,
        reported: Reported::default(),
        node_id: NodeId::new(uuid(30)),
        key_hash: SecretHash::of(b"key"),
    }
}

pub fn mk_report(ready: bool) -> CompositeReport {
    CompositeReport::Present(Box::new(LiveComposite {
        uid: "uid-1".to_owned(),
        ready,
        failure: None,
        terminating: false,
        owned_hash: "hash".to_owned(),
        carried: Carried::Nothing,
        injected: None,
        evidence: Value::Null,
    }))
}

/// Everything can be rendered, injected and applied; [`mk_report`] has no drift.
pub fn mk_facts() -> Facts {
    Facts {
        owned_hash: Ok("hash".to_owned()),
        injectable: Ok(()),
        served: true,
        token_lifetimes: TokenLifetimes::default(),
    }
}

pub fn mk_frozen() -> Mode {
    Mode::Frozen(Freeze {
        since: at(900),
        until: at(9_000),
        by: "key:test".to_owned(),
        reason: "test".to_owned(),
    })
}

pub fn mk_deletion(snapshot: &ResourceSnapshot) -> Deletion {
    Deletion {
        id: DeletionId::new(uuid(40)),
        target: snapshot.resource.id.into(),
        name: snapshot.resource.handle.to_string(),
        project_id: Some(snapshot.resource.project_id),
        state: DeletionState::Running,
        requested_by: "key:test".to_owned(),
        reason: "test".to_owned(),
        parent: None,
        cascade: false,
        resources: 1,
        fleet: StackFacts::default(),
        revision: Revision::FIRST,
        requested_at: at(900),
        scheduled_for: None,
        done_at: None,
        retention: Duration::from_secs(3_600),
        restorable_until: None,
        purge_protected: false,
        ended_at: None,
    }
}

pub fn mk_declare_snapshot() -> DeclareSnapshot {
    DeclareSnapshot {
        now: at(1_000),
        project: Some(ProjectId::new(uuid(12))),
        project_leaving: false,
        blueprint: Some(mk_blueprint()),
        blueprint_retired: false,
        credential: Some(CredentialView {
            id: CloudCredentialId::new(uuid(14)),
            name: "local".to_owned(),
            cloud_id: CloudId::new(uuid(17)),
            provider: Some("local".to_owned()),
            assigned: true,
            kv_mount: "secret".to_owned(),
            kv_path: "clouds/local".to_owned(),
        }),
        assigned_credentials: vec!["local".to_owned()],
        placement: Some(mk_placement()),
        holder: None,
        conflict: None,
    }
}

pub fn mk_declaration() -> Declaration {
    Declaration {
        resource_id: ResourceId::new(uuid(11)),
        provisioned_resource_id: ProvisionedResourceId::new(uuid(10)),
        handle: "web-1".to_owned(),
        labels: BTreeMap::new(),
        project: "default".to_owned(),
        blueprint: "local-node".to_owned(),
        version: None,
        credential: None,
        parameters: BTreeMap::new(),
        owner: None,
    }
}
