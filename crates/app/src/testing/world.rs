//! The suite's test client: declares, enrols and deletes through the ports,
//! with ids and secrets that it generates itself.
//!
//! Generated ids rise, so that "everything since then" is a cursor.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use slipway_core::access::api_key::ApiKey;
use slipway_core::access::audit::Actor;
use slipway_core::blocker::Deadlines;
use slipway_core::broker::abandon;
use slipway_core::broker::declare::{Declaration, declare};
use slipway_core::broker::delete;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::redeclare::{Corrections, RedeclareSnapshot};
use slipway_core::broker::retry;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint_version::{
    BlueprintVersion, Engine, InjectionStrategy, MeshRole,
};
use slipway_core::catalog::parameters::{Parameter, ParameterSchema, ParameterType};
use slipway_core::deletion::door::{Ask, Defaults, Doored};
use slipway_core::ids::{
    BlueprintId, BlueprintVersionId, BootstrapTokenId, CloudCredentialId, CloudId, ClusterId,
    DeletionId, DrainId, NodeId, Partition, ProjectId, ProvisionedResourceId, ResourceId,
};
use slipway_core::nodes::drain;
use slipway_core::nodes::enrol::{Enrolment, enrol};
use slipway_core::nodes::node::{CAPABILITY_DRAIN, Reported};
use slipway_core::nodes::reenrol;
use slipway_core::nodes::token::{SecretHash, TokenKind};
use slipway_core::nodes::tokens_by_hand::Issue;
use slipway_core::operations::control::Mode;
use slipway_core::precondition::Expected;
use slipway_core::text::Reason;
use slipway_core::{ErrorKind, Phase};
use uuid::Uuid;

use super::substrate::Substrate;
use crate::broker::port::{DeclareKey, HistoryLine, RedeclareKey, Redeclared, ResourceKey};
use crate::ports::Stores;
use crate::ports::store::{Error, Page};
use crate::seed::Seed;

pub(super) const PROJECT: &str = "default";
pub(super) const BLUEPRINT: &str = "conformance-node";

/// A resource under test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Declared {
    pub(super) resource: ResourceId,
    pub(super) attempt: ProvisionedResourceId,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) store: Stores,
    /// The partition of the seeded cluster, on which everything here is declared.
    pub(super) partition: Partition,
    pub(super) substrate: Substrate,
    counter: AtomicU64,
    /// The last position that a check has seen.
    pub(super) seen_position: AtomicI64,
}

impl World {
    /// A world on this store, with the seed written.
    pub(super) async fn new(store: Stores) -> Self {
        let mut world = Self {
            store,
            partition: Partition::new(Uuid::nil()),
            substrate: Substrate::default(),
            counter: AtomicU64::new(1),
            seen_position: AtomicI64::new(0),
        };
        let cluster =
            world.store.operations.seed(&world.mk_seed()).await.expect("the seed is written");
        world.partition = cluster.into();
        world
    }

    pub(super) fn uuid(&self) -> Uuid {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        Uuid::from_u128((0x0190_0000_0000_7000_u128 << 64) | u128::from(number))
    }

    /// How many keys can administer now.
    pub(super) async fn usable_admins(&self) -> usize {
        let now = self.store.operations.database_now().await.expect("a clock");
        let page = Page { after: None, limit: 1_000 };
        let keys = self.store.kind::<ApiKey>().page(&None, page).await.expect("a list");
        keys.iter().filter(|key| key.keeps_administration(now)).count()
    }

    /// A hash that no other call returns.
    pub(super) fn hash(&self) -> SecretHash {
        SecretHash::of(self.uuid().as_bytes())
    }

    pub(super) fn public_key(&self) -> [u8; 32] {
        *self.hash().as_bytes()
    }

    pub(super) fn handle(&self) -> String {
        format!("r{}", self.uuid().simple())
    }

    pub(super) fn mk_seed(&self) -> Seed {
        let integer = |name: &str, immutable| Parameter {
            name: name.to_owned(),
            kind: ParameterType::Integer,
            required: false,
            default: None,
            immutable,
        };
        let schema = ParameterSchema::new(vec![integer("size", false), integer("zone", true)]);
        Seed {
            project_id: ProjectId::new(self.uuid()),
            project: PROJECT.to_owned(),
            cloud_id: CloudId::new(self.uuid()),
            cloud: "local".to_owned(),
            provider: "local".to_owned(),
            credential_id: CloudCredentialId::new(self.uuid()),
            credential: "local".to_owned(),
            kv_mount: "secret".to_owned(),
            kv_path: "clouds/local".to_owned(),
            cluster_id: ClusterId::new(self.uuid()),
            cluster: "local".to_owned(),
            engine: Engine::Local,
            substrate_uid: "root-1".to_owned(),
            namespace_prefix: "slipway-".to_owned(),
            blueprint: BlueprintVersion {
                id: BlueprintVersionId::new(self.uuid()),
                blueprint_id: BlueprintId::new(self.uuid()),
                slug: BLUEPRINT.to_owned(),
                version: "v1".to_owned(),
                engine: Engine::Local,
                composite_type: None,
                cloud_tags: false,
                own_provider_config: false,
                composition_name: None,
                surge: true,
                parameter_schema: schema.expect("the schema is valid"),
                injection_strategy: InjectionStrategy::CloudInitUserData,
                mesh_role: MeshRole::Node,
                provider_kinds: vec!["local".to_owned()],
            },
            blueprint_name: "Conformance".to_owned(),
            blueprint_description: "For the suite alone.".to_owned(),
            manual_blueprint: None,
        }
    }

    pub(super) fn declare_key(&self, handle: &str) -> DeclareKey {
        DeclareKey {
            project: PROJECT.to_owned(),
            handle: handle.to_owned(),
            blueprint: BLUEPRINT.to_owned(),
            version: None,
            credential: None,
        }
    }

    pub(super) async fn declare(&self, handle: &str) -> Result<Declared, Error> {
        self.declare_by(&self.declare_key(handle)).await
    }

    pub(super) async fn declare_by(&self, key: &DeclareKey) -> Result<Declared, Error> {
        let declaration = Declaration {
            resource_id: ResourceId::new(self.uuid()),
            provisioned_resource_id: ProvisionedResourceId::new(self.uuid()),
            handle: key.handle.clone(),
            labels: BTreeMap::from([("tier".to_owned(), "ünïcode".to_owned())]),
            project: key.project.clone(),
            blueprint: key.blueprint.clone(),
            version: key.version.clone(),
            credential: key.credential.clone(),
            parameters: BTreeMap::from([("size".to_owned(), serde_json::json!(3))]),
            owner: None,
        };
        self.store
            .broker
            .decide_declaration(key, &mut |snapshot| declare(snapshot, &declaration, &operator()))
            .await?;
        Ok(Declared {
            resource: declaration.resource_id,
            attempt: declaration.provisioned_resource_id,
        })
    }

    pub(super) async fn delete(&self, resource: ResourceId) -> Result<DeletionId, Error> {
        self.delete_as(resource, &self.ask()).await
    }

    pub(super) async fn delete_as(
        &self,
        resource: ResourceId,
        ask: &Ask,
    ) -> Result<DeletionId, Error> {
        let mut answered = ask.deletion_id;
        let mut rule = |snapshot: &Doored<ResourceSnapshot>| {
            let requested = delete::request(&snapshot.of, &snapshot.door, ask, &operator())?;
            answered = requested.deletion_id;
            Ok(requested.commit)
        };
        self.store
            .broker
            .decide_deletion(resource, ask.input(Defaults::default()), &mut rule)
            .await?;
        Ok(answered)
    }

    /// Retries with corrections: `version`, and parameters.
    pub(super) async fn correct(
        &self,
        resource: ResourceId,
        corrections: Value,
    ) -> Result<(), Error> {
        let mut parameters: BTreeMap<String, Value> =
            serde_json::from_value(corrections).expect("an object");
        let version = parameters.remove("version");
        let version = version.and_then(|version| version.as_str().map(str::to_owned));
        let key = RedeclareKey { resource, version: version.clone(), of: Redeclared::Beside };
        let corrections = Corrections { version, parameters };
        let reason = Reason::parse("a typo").expect("a valid reason");
        let id = DeletionId::new(self.uuid());
        let mut rule = |snapshot: &RedeclareSnapshot| {
            retry::request_corrected(
                snapshot,
                &corrections,
                id,
                Duration::ZERO,
                &reason,
                &operator(),
            )
        };
        self.store.broker.decide_redeclaration(&key, &mut rule).await
    }

    /// A request to delete, at once and alone.
    pub(in crate::testing) fn ask(&self) -> Ask {
        Ask {
            deletion_id: DeletionId::new(self.uuid()),
            reason: Reason::parse("the suite is done with it").expect("a valid reason"),
            expected: Expected::Any,
            grace: None,
            cascade: false,
            keep: false,
            break_glass: false,
            plan: None,
        }
    }

    /// Abandons what a loop found unreadable, as a replica that does not serve the cluster
    /// decides it.
    pub(super) async fn abandon(&self, declared: Declared) -> Result<(), Error> {
        let reason = Reason::parse("the suite lost the cluster").expect("a valid reason");
        let handle = self.snapshot(declared.attempt).await.resource.handle;
        let request = abandon::Request { reason: &reason, confirm: handle.as_str() };
        let deadlines = Deadlines::default();
        let circumstances = abandon::Circumstances {
            report: None,
            mode: &Mode::Acting,
            deadlines: &deadlines,
            claimed_within: Duration::from_secs(60),
        };
        let mut rule = |snapshot: &ResourceSnapshot| {
            abandon::request(snapshot, request, circumstances, &operator())
        };
        self.store.broker.decide(ResourceKey::Attempt(declared.attempt), &mut rule).await
    }

    /// A resource that drains and whose substrate the loop cannot read any more.
    pub(super) async fn lost(&self) -> (Declared, NodeId) {
        let (declared, node, _) = self.draining().await;
        let claimed = self.claim_now(declared.attempt).await;
        let unknown = CompositeReport::Unknown { reason: "the cluster is away".to_owned() };
        self.tick_seeing(claimed, &unknown).await.expect("a tick");
        (declared, node)
    }

    pub(super) async fn enrol(
        &self,
        token: SecretHash,
        public_key: [u8; 32],
    ) -> Result<NodeId, Error> {
        self.enrol_with_nonce(token, public_key, &format!("nonce-{}", self.uuid())).await
    }

    pub(super) async fn enrol_with_nonce(
        &self,
        token: SecretHash,
        public_key: [u8; 32],
        nonce: &str,
    ) -> Result<NodeId, Error> {
        let enrolment = Enrolment {
            token_hash: token,
            kind: TokenKind::Node,
            public_key,
            hostname: "node.example".to_owned(),
            capabilities: vec![CAPABILITY_DRAIN.to_owned()],
            nonce: Some(nonce.to_owned()),
            project_id: None,
            resource_handle: None,
            requested_resource_id: None,
            reported: Reported::of(Some("1.0.0"), None, None),
            node_id: NodeId::new(self.uuid()),
            key_hash: self.hash(),
        };
        let mut node_id = enrolment.node_id;
        self.store
            .nodes
            .decide_enrolment(token, Some(nonce), &public_key, &mut |snapshot| {
                let enrolled = enrol(snapshot, &enrolment)?;
                node_id = enrolled.node_id;
                Ok(enrolled.commit)
            })
            .await?;
        Ok(node_id)
    }

    pub(super) async fn acknowledge(&self, node: NodeId, drain: DrainId) -> Result<(), Error> {
        let mut rule = |snapshot: &ResourceSnapshot| drain::acknowledge(snapshot, node, drain);
        self.store.broker.decide(ResourceKey::Node(node), &mut rule).await
    }

    pub(super) async fn leave(&self, node: NodeId) -> Result<(), Error> {
        let mut rule = |snapshot: &ResourceSnapshot| Ok(drain::leave(snapshot, node));
        self.store.broker.decide(ResourceKey::Node(node), &mut rule).await
    }

    pub(super) async fn force(&self, resource: ResourceId) -> Result<(), Error> {
        let reason = Reason::parse("the node is lost").expect("a valid reason");
        let mut rule = |snapshot: &ResourceSnapshot| drain::force(snapshot, &reason, &operator());
        self.store.broker.decide(ResourceKey::Resource(resource), &mut rule).await
    }

    /// The hash of the token with which the machine may enrol again.
    pub(super) async fn reenrol(&self, resource: ResourceId) -> Result<SecretHash, Error> {
        let issue = Issue {
            id: BootstrapTokenId::new(self.uuid()),
            hash: self.hash(),
            kind: TokenKind::Node,
            lifetime: Duration::from_secs(600),
        };
        let reason = Reason::parse("its disk was full").expect("a reason");
        let mut rule =
            |snapshot: &ResourceSnapshot| reenrol::request(snapshot, issue, &reason, &operator());
        self.store.broker.decide(ResourceKey::Resource(resource), &mut rule).await?;
        Ok(issue.hash)
    }

    /// The current token of the attempt.
    pub(super) async fn token(&self, attempt: ProvisionedResourceId) -> SecretHash {
        self.snapshot(attempt).await.token.expect("the attempt has a token").hash
    }

    /// Oldest first.
    pub(super) async fn history(&self, attempt: ProvisionedResourceId) -> Vec<HistoryLine> {
        let page = Page { after: None, limit: 100_000 };
        let lines = self.store.broker.history_list(attempt, page).await;
        lines.expect("a history").into_iter().rev().collect()
    }

    /// A fresh resource in Enrolling.
    pub(super) async fn enrolling(&self) -> Declared {
        let declared = self.declare(&self.handle()).await.expect("a declaration");
        self.drive(declared.attempt, Phase::Enrolling).await;
        declared
    }

    /// A fresh resource in Ready, and its node.
    pub(super) async fn ready(&self) -> (Declared, NodeId) {
        let declared = self.enrolling().await;
        let token = self.token(declared.attempt).await;
        let node = self.enrol(token, self.public_key()).await.expect("an enrolment");
        self.drive(declared.attempt, Phase::Ready).await;
        (declared, node)
    }

    /// A fresh resource that is being deleted, whose node was asked to drain.
    pub(super) async fn draining(&self) -> (Declared, NodeId, DrainId) {
        let (declared, node) = self.ready().await;
        self.delete(declared.resource).await.expect("a deletion");
        let claimed = self.claim_now(declared.attempt).await;
        self.tick(claimed).await.expect("the tick that asks for the drain");
        let snapshot = self.snapshot(declared.attempt).await;
        let drain = snapshot.node.and_then(|node| node.drain).expect("the node was asked to drain");
        (declared, node, drain.id)
    }
}

/// The future of a case on the heap, made where it takes no room in the frame of the caller:
/// all cases together are more than the stack of a test thread.
pub(super) fn apart<F: Future<Output = ()>>(case: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(case())
}

pub(super) fn operator() -> Actor {
    Actor { name: "key:suite".to_owned(), correlation_id: Some("suite".to_owned()) }
}

/// The kind of a refusal; panics on any other outcome.
pub(super) fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> ErrorKind {
    match outcome {
        Err(Error::Refused(refusal)) => refusal.kind,
        other => panic!("expected a refusal, got {other:?}"),
    }
}
