//! Creating and deleting catalog rows through the ports.

use slipway_core::access::AccessWrite;
use slipway_core::access::idempotency::{Entry, Key, Request};
use slipway_core::catalog::Name;
use slipway_core::catalog::blueprint::{self, Blueprint, VersionContent};
use slipway_core::catalog::blueprint_version::{Documents, Engine, InjectionStrategy, MeshRole};
use slipway_core::catalog::cloud::{self, Cloud, Endpoint};
use slipway_core::catalog::credential::{self, Credential};
use slipway_core::catalog::label::LabelDefinition;
use slipway_core::catalog::parameters::{Parameter, ParameterSchema, ParameterType};
use slipway_core::catalog::project::{self, Project};
use slipway_core::commit::{Commit, Write};
use slipway_core::deletion::door::{Ask, Defaults, Doored};
use slipway_core::deletion::record::DeletionState;
use slipway_core::deletion::request;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{
    BlueprintId, BlueprintVersionId, CloudCredentialId, CloudId, ClusterId, DeletionId, ProjectId,
};
use slipway_core::nodes::mesh::MeshCidr;
use slipway_core::nodes::token::SecretHash;
use slipway_core::placement::cluster::{self, Cluster, ClusterAccess, NamespacePrefix};
use slipway_core::precondition::Expected;
use slipway_core::subject::Subject;
use slipway_core::text::Labels;

use crate::broker::port::DeclareKey;
use crate::catalog::port::{BlueprintKey, CredentialKey};
use crate::deletion::request::{DeletableKind, subject};
use crate::kind::StoredKind;
use crate::ports::store::Error;
use crate::testing::world::{BLUEPRINT, Declared, World, operator};

pub(super) fn name(text: &str) -> Name {
    Name::parse("name", text).expect("the suite's names are valid")
}

impl World {
    /// A unique name.
    pub(in crate::testing) fn fresh_name(&self, kind: &str) -> String {
        format!("{kind}-{}", &self.uuid().simple().to_string()[16..])
    }

    /// Deletes something, and answers the deletion that this led to.
    pub(in crate::testing) async fn remove<K: DeletableKind>(
        &self,
        key: &<K as StoredKind>::Key,
        ask: &Ask,
    ) -> Result<DeletionId, Error> {
        let mut answered = ask.deletion_id;
        let mut rule = |snapshot: &Doored<_>| {
            let asked = request::request::<K>(&snapshot.of, &snapshot.door, ask, &operator())?;
            answered = asked.deletion_id;
            Ok(asked.commit)
        };
        let (store, defaults) = (self.store.kind::<K>(), Defaults::default());
        store.decide_deletion(key, subject::<K>, ask.input(defaults), &mut rule).await?;
        Ok(answered)
    }

    pub(in crate::testing) async fn create_project(&self, named: &str) -> Result<ProjectId, Error> {
        self.create_project_bound(named, None).await
    }

    /// The same with a key bound in the same commit.
    pub(super) async fn create_project_bound(
        &self,
        named: &str,
        request: Option<Request>,
    ) -> Result<ProjectId, Error> {
        let id = ProjectId::new(self.uuid());
        let new = project::NewProject {
            id,
            name: name(named),
            labels: Labels::default(),
            mesh_cidr: MeshCidr::DEFAULT,
        };
        let record =
            request.map(|request| Entry { id: self.uuid(), request, subject_id: id.as_uuid() });
        let mut rule = |snapshot: &_| {
            let commit = project::create(snapshot, &new, &operator())?;
            Ok(with_entry(commit, record.as_ref()))
        };
        self.store.kind::<Project>().decide(named, &mut rule).await?;
        Ok(id)
    }

    pub(in crate::testing) async fn delete_project(
        &self,
        reference: &str,
    ) -> Result<DeletionId, Error> {
        self.remove::<Project>(reference, &self.ask()).await
    }

    pub(in crate::testing) async fn create_cloud(&self, named: &str) -> Result<CloudId, Error> {
        let id = CloudId::new(self.uuid());
        let new = cloud::NewCloud {
            id,
            name: name(named),
            provider: name("local"),
            endpoint: Endpoint::default(),
        };
        let mut rule = |snapshot: &_| cloud::create(snapshot, &new, &operator());
        self.store.kind::<Cloud>().decide(named, &mut rule).await?;
        Ok(id)
    }

    pub(super) async fn delete_cloud(&self, reference: &str) -> Result<(), Error> {
        self.remove::<Cloud>(reference, &self.ask()).await.map(drop)
    }

    pub(in crate::testing) async fn create_credential(
        &self,
        cloud: &str,
        named: &str,
    ) -> Result<CloudCredentialId, Error> {
        let id = CloudCredentialId::new(self.uuid());
        let new =
            credential::NewCredential { id, name: name(named), kv_mount: None, kv_path: None };
        let key = CredentialKey::New { cloud: cloud.to_owned(), name: named.to_owned() };
        let mut rule = |snapshot: &_| credential::create(snapshot, &new, &operator());
        self.store.kind::<Credential>().decide(&key, &mut rule).await?;
        Ok(id)
    }

    pub(in crate::testing) async fn delete_credential(
        &self,
        id: CloudCredentialId,
    ) -> Result<(), Error> {
        self.remove::<Credential>(&CredentialKey::Existing(id), &self.ask()).await.map(drop)
    }

    pub(in crate::testing) async fn assign(
        &self,
        project: &str,
        id: CloudCredentialId,
    ) -> Result<(), Error> {
        let mut rule = |snapshot: &_| credential::assign(snapshot, &operator());
        self.store.catalog.decide_credential_assignment(project, id, &mut rule).await
    }

    pub(in crate::testing) async fn withdraw(
        &self,
        project: &str,
        id: CloudCredentialId,
    ) -> Result<(), Error> {
        let mut rule = |snapshot: &_| credential::withdraw(snapshot, &operator());
        self.store.catalog.decide_credential_assignment(project, id, &mut rule).await
    }

    pub(super) async fn create_cluster(&self, named: &str) -> Result<ClusterId, Error> {
        self.create_cluster_of(named, Engine::Local, None, None).await
    }

    /// A managed cluster, in a region.
    pub(super) async fn create_managed(
        &self,
        named: &str,
        region: &str,
    ) -> Result<ClusterId, Error> {
        let access = Some(ClusterAccess::InCluster);
        self.create_cluster_of(named, Engine::Crossplane, Some(name(region)), access).await
    }

    async fn create_cluster_of(
        &self,
        named: &str,
        engine: Engine,
        region: Option<Name>,
        access: Option<ClusterAccess>,
    ) -> Result<ClusterId, Error> {
        let id = ClusterId::new(self.uuid());
        let new = cluster::NewCluster {
            id,
            name: name(named),
            engine,
            namespace_prefix: NamespacePrefix::from_stored(NamespacePrefix::DEFAULT.to_owned()),
            region,
            access,
        };
        let mut rule = |snapshot: &_| cluster::create(snapshot, &new, &operator());
        self.store.kind::<Cluster>().decide(named, &mut rule).await?;
        Ok(id)
    }

    pub(super) async fn delete_cluster(&self, reference: &str) -> Result<DeletionId, Error> {
        self.remove::<Cluster>(reference, &self.ask()).await
    }

    pub(super) async fn delete_label(&self, key: &str) -> Result<DeletionId, Error> {
        self.remove::<LabelDefinition>(key, &self.ask()).await
    }

    pub(super) async fn delete_blueprint(&self, slug: &str) -> Result<DeletionId, Error> {
        self.remove::<Blueprint>(&blueprint_key(slug, None), &self.ask()).await
    }

    /// Every deletion has its record, done at once.
    pub(super) async fn assert_recorded(&self, deletion: DeletionId, target: impl Into<Subject>) {
        let recorded = self.store.deletion.deletion_fetch(deletion).await.expect("a fetch");
        let recorded = recorded.expect("every deletion has its record");
        let target = target.into();
        assert_eq!((recorded.state, recorded.target), (DeletionState::Done, target));
        let members = self.store.deletion.deletion_members(deletion, 10).await.expect("members");
        let members: Vec<_> = members.shown.iter().map(|member| member.subject).collect();
        assert_eq!(members, [target]);
    }

    pub(in crate::testing) async fn assignment(
        &self,
        project: &str,
        cluster: &str,
    ) -> Result<(), Error> {
        let mut rule = |snapshot: &_| cluster::assign(snapshot, Expected::Any, &operator());
        self.store.placement.decide_cluster_assignment(project, Some(cluster), &mut rule).await
    }

    /// A project in which something of engine local can be declared, and its credential.
    pub(in crate::testing) async fn furnished(&self) -> (String, CloudCredentialId) {
        self.furnished_on("local").await
    }

    /// The same for engine crossplane.
    pub(super) async fn furnished_managed(&self) -> (String, CloudCredentialId) {
        let cluster = self.fresh_name("cluster");
        self.create_managed(&cluster, "eu").await.expect("a cluster");
        self.furnished_on(&cluster).await
    }

    pub(super) async fn furnished_on(&self, cluster: &str) -> (String, CloudCredentialId) {
        let project = self.fresh_name("project");
        self.create_project(&project).await.expect("a project");
        let credential = self.create_credential("local", &self.fresh_name("credential")).await;
        let credential = credential.expect("a credential");
        self.assign(&project, credential).await.expect("an assignment");
        self.assignment(&project, cluster).await.expect("a place");
        (project, credential)
    }

    pub(super) fn declare_key_in(&self, project: &str) -> DeclareKey {
        DeclareKey { project: project.to_owned(), ..self.declare_key(&self.handle()) }
    }

    pub(in crate::testing) async fn declare_in(&self, project: &str) -> Result<Declared, Error> {
        self.declare_by(&self.declare_key_in(project)).await
    }

    pub(in crate::testing) async fn create_blueprint(
        &self,
        slug: &str,
    ) -> Result<BlueprintId, Error> {
        self.create_blueprint_for(Engine::Local, slug).await
    }

    pub(super) async fn create_blueprint_for(
        &self,
        engine: Engine,
        slug: &str,
    ) -> Result<BlueprintId, Error> {
        let id = BlueprintId::new(self.uuid());
        let new = blueprint::NewBlueprint {
            id,
            slug: name(slug),
            display_name: "Süite".to_owned(),
            description: "For the suite alone.".to_owned(),
            engine,
        };
        let mut rule = |snapshot: &_| blueprint::create(snapshot, &new, &operator());
        self.store.kind::<Blueprint>().decide(&blueprint_key(slug, None), &mut rule).await?;
        Ok(id)
    }

    pub(super) async fn publish(
        &self,
        slug: &str,
        content: &VersionContent,
    ) -> Result<BlueprintVersionId, Error> {
        let unread = Err(Refusal::new(ErrorKind::XrdInvalid, "the suite has no XRD"));
        self.publish_with(slug, content, &unread).await
    }

    pub(super) async fn publish_with(
        &self,
        slug: &str,
        content: &VersionContent,
        documents: &Result<Documents, Refusal>,
    ) -> Result<BlueprintVersionId, Error> {
        let fresh = BlueprintVersionId::new(self.uuid());
        let mut id = fresh;
        let mut rule = |snapshot: &_| {
            let published =
                blueprint::publish(snapshot, fresh, content, &[], documents, &operator())?;
            id = published.id;
            Ok(published.commit)
        };
        self.store
            .kind::<Blueprint>()
            .decide(&blueprint_key(slug, Some(&content.version)), &mut rule)
            .await?;
        Ok(id)
    }

    pub(super) async fn retire(&self, slug: &str, version: &str) -> Result<(), Error> {
        let mut rule = |snapshot: &_| blueprint::retire(snapshot, Expected::Any, &operator());
        self.store.kind::<Blueprint>().decide(&blueprint_key(slug, Some(version)), &mut rule).await
    }

    pub(super) fn request(&self, key: &str, body: &str) -> Request {
        Request {
            caller: "suite".to_owned(),
            key: Key::parse(key).expect("a valid key"),
            route: "POST /projects".to_owned(),
            body_hash: SecretHash::of(body.as_bytes()),
        }
    }
}

/// A commit that binds a key first.
fn with_entry(mut commit: Commit, record: Option<&Entry>) -> Commit {
    if let Some(record) = record {
        let write = AccessWrite::IdempotencyInsert(record.clone());
        commit.writes.insert(0, Write::Access(write));
    }
    commit
}

/// Content to publish, with each type of parameter.
pub(super) fn mk_content(version: &str) -> VersionContent {
    let parameter = |name: &str, kind, default| Parameter {
        name: name.to_owned(),
        kind,
        required: false,
        default: Some(default),
        immutable: false,
    };
    let schema = ParameterSchema::new(vec![
        parameter("size", ParameterType::Integer, serde_json::json!(i64::MIN)),
        parameter("public", ParameterType::Boolean, serde_json::json!(true)),
        parameter("zone", ParameterType::String, serde_json::json!("ünï\n\"code\"")),
    ]);
    VersionContent {
        version: version.to_owned(),
        xrd: "kind: X\n# ünïcode\n".to_owned(),
        composition: String::new(),
        parameter_schema: schema.expect("a valid schema"),
        injection_strategy: InjectionStrategy::ProviderSecret,
        mesh_role: MeshRole::Standalone,
        provider_kinds: vec!["local".to_owned(), BLUEPRINT.to_owned()],
        install_definitions: false,
        surge: false,
    }
}

fn blueprint_key(slug: &str, version: Option<&str>) -> BlueprintKey {
    BlueprintKey { blueprint: slug.to_owned(), version: version.map(str::to_owned) }
}
