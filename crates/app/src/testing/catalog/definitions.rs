//! Definitions of blueprints that must be installed, and their state on clusters.

use std::collections::BTreeSet;

use slipway_core::Refusal;
use slipway_core::catalog::blueprint::VersionContent;
use slipway_core::catalog::blueprint_version::{
    CompositeDefinition, CompositeScope, CompositeType, Documents, Engine,
};
use slipway_core::catalog::composition_name;
use slipway_core::catalog::project::Project;
use slipway_core::commit::Commit;
use slipway_core::ids::{BlueprintId, ClusterId};
use slipway_core::placement::definitions::{DefinitionPhase, DefinitionsView, Demand};
use slipway_core::placement::rules::definitions::{self, DefinitionsDecision};

use super::catalog_client::mk_content;
use crate::broker::port::DeclareKey;
use crate::ports::store::{Error, Page};
use crate::testing::world::{World, operator};

impl World {
    /// A blueprint of engine crossplane with a kind of its own.
    pub(super) async fn installable(&self) -> (String, BlueprintId) {
        let slug = self.fresh_name("blueprint");
        let id = self.create_blueprint_for(Engine::Crossplane, &slug).await;
        (slug, id.expect("a blueprint"))
    }

    pub(super) async fn publish_installed(
        &self,
        slug: &str,
        version: &str,
        install_definitions: bool,
    ) {
        let composite = CompositeDefinition {
            composite_type: CompositeType {
                group: "nodes.example.org".to_owned(),
                version: version.to_owned(),
                kind: "XServer".to_owned(),
                plural: slug.to_owned(),
                scope: CompositeScope::Namespaced,
            },
            cloud_tags: false,
        };
        let documents = Ok(Documents { composite, composition: "servers".to_owned() });
        let content = VersionContent { install_definitions, ..mk_content(version) };
        self.publish_with(slug, &content, &documents).await.expect("a version");
    }

    pub(super) async fn demand(
        &self,
        cluster: ClusterId,
        blueprint: BlueprintId,
    ) -> Option<Demand> {
        let listed = self.store.placement.demand_list(cluster).await.expect("a list");
        listed.into_iter().find(|demand| demand.blueprint_id == blueprint)
    }

    /// The view for one cluster; other clusters of the suite have projects too.
    async fn shown(&self, cluster: ClusterId, blueprint: BlueprintId) -> Option<DefinitionsView> {
        let page = Page { after: None, limit: 1_000 };
        let listed =
            self.store.placement.definitions_list(blueprint, page).await.expect("a list").items;
        listed.into_iter().find(|shown| shown.cluster_id == cluster)
    }

    /// Records this state as the placement loop would.
    pub(super) async fn record_definitions(
        &self,
        demand: &Demand,
        phase: DefinitionPhase,
        found: Option<&str>,
    ) -> Result<(), Error> {
        let plan = DefinitionsDecision {
            actions: Vec::new(),
            phase,
            found: found.map(str::to_owned),
            problem: Some("a problem, ünïcode".to_owned()),
        };
        let mut rule = |demand: &Demand| Ok(definitions::record(demand, &plan, &operator()));
        let (cluster, blueprint) = (demand.cluster_id, demand.blueprint_id);
        self.store.placement.decide_definitions(cluster, blueprint, &mut rule).await
    }
}

pub(super) async fn the_newest_version_is_demanded_and_its_progress_kept(world: &World) {
    let name = world.fresh_name("cluster");
    let cluster = world.create_managed(&name, "eu").await.expect("a cluster");
    let (slug, blueprint) = world.installable().await;
    world.publish_installed(&slug, "v1", false).await;
    assert_eq!(world.demand(cluster, blueprint).await, None, "nobody asked for it");
    let mut unasked = |_: &Demand| -> Result<Commit, Refusal> { unreachable!("nothing to decide") };
    let none = world.store.placement.decide_definitions(cluster, blueprint, &mut unasked).await;
    assert!(matches!(none, Err(Error::NotFound { .. })), "{none:?}");

    world.publish_installed(&slug, "v2", true).await;
    let demand = world.demand(cluster, blueprint).await.expect("it is to be there");
    assert_eq!((&*demand.slug, &*demand.version), (&*slug, "v2"));
    assert_eq!((&*demand.xrd, &demand.definitions), (&*mk_content("v2").xrd, &None));
    assert_eq!(world.shown(cluster, blueprint).await, None, "no project lives there");
    let project = world.fresh_name("project");
    world.create_project(&project).await.expect("a project");
    world.assignment(&project, &name).await.expect("a place");
    let shown = world.shown(cluster, blueprint).await.expect("it is to be there");
    assert_eq!((&*shown.cluster, shown.wanted.as_deref()), (&*name, Some("v2")));
    assert_eq!(shown.definitions, None);

    world.record_definitions(&demand, DefinitionPhase::Applying, None).await.expect("a record");
    let first = world.demand(cluster, blueprint).await.expect("it is to be there").definitions;
    let first = first.expect("a row");
    assert_eq!((first.phase, &*first.wanted), (DefinitionPhase::Applying, "v2"));
    assert_eq!(first.problem.as_deref(), Some("a problem, ünïcode"));
    world.record_definitions(&demand, DefinitionPhase::Applying, None).await.expect("the same");
    let same = world.demand(cluster, blueprint).await.expect("it is to be there").definitions;
    assert_eq!(same.as_ref(), Some(&first), "nothing new");
    world
        .record_definitions(&demand, DefinitionPhase::Established, Some("v2"))
        .await
        .expect("more");
    let shown = world.shown(cluster, blueprint).await.expect("it is to be there");
    let whole = shown.definitions.clone().expect("a row");
    assert_eq!((whole.phase, whole.found.as_deref()), (DefinitionPhase::Established, Some("v2")));
    assert_eq!(whole.revision, first.revision.next());
    assert!(whole.since >= first.since);

    // Skew: the demanded version differs from the installed one.
    world.publish_installed(&slug, "v3", true).await;
    world.publish_installed(&slug, "v4", false).await;
    let shown = world.shown(cluster, blueprint).await.expect("it is to be there");
    assert_eq!(shown.wanted.as_deref(), Some("v3"));
    assert_eq!(shown.definitions.as_ref().and_then(|row| row.found.as_deref()), Some("v2"));
    let demanded = async || world.demand(cluster, blueprint).await.map(|demand| demand.version);
    assert_eq!(demanded().await.as_deref(), Some("v3"));
    world.retire(&slug, "v3").await.expect("a retirement");
    assert_eq!(demanded().await.as_deref(), Some("v2"), "the one before");
    world.retire(&slug, "v2").await.expect("a retirement");
    assert_eq!(demanded().await, None);
    let shown = world.shown(cluster, blueprint).await.expect("what stands is shown");
    assert_eq!((&shown.wanted, shown.definitions.is_some()), (&None, true));
}

pub(super) async fn what_is_published_or_in_use_goes_on_being_served(world: &World) {
    let (slug, blueprint) = world.installable().await;
    world.publish_installed(&slug, "v1", true).await;
    let named = world.fresh_name("cluster");
    let home = world.create_managed(&named, "eu").await.expect("a cluster");
    let (project, credential) = world.furnished_on(&named).await;
    let key = DeclareKey {
        blueprint: slug.clone(),
        credential: Some(credential.to_string()),
        ..world.declare_key_in(&project)
    };
    world.declare_by(&key).await.expect("a declaration");
    world.publish_installed(&slug, "v2", true).await;
    let elsewhere = world.create_managed(&world.fresh_name("cluster"), "eu").await.expect("one");
    let kept = async |cluster: ClusterId| {
        world.demand(cluster, blueprint).await.expect("it is to be there").kept
    };
    let versions = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let both: BTreeSet<String> = versions(&["v1", "v2"]);
    assert_eq!((kept(home).await, kept(elsewhere).await), (both.clone(), both.clone()));
    world.retire(&slug, "v1").await.expect("a retirement");
    assert_eq!(kept(home).await, both, "something was made in it there");
    assert_eq!(kept(elsewhere).await, versions(&["v2"]), "and nothing here");
}

/// Each version that a cluster needs has a Composition of its own there, and a composite names
/// that of its version, for the API version of the XRD that is there.
pub(super) async fn a_composite_names_the_composition_of_its_version(world: &World) {
    let (slug, blueprint) = world.installable().await;
    world.publish_installed(&slug, "v0", false).await;
    world.publish_installed(&slug, "v1", true).await;
    let named = world.fresh_name("cluster");
    let home = world.create_managed(&named, "eu").await.expect("a cluster");
    let (project, credential) = world.furnished_on(&named).await;
    let declare = async |version: &str| {
        let key = DeclareKey {
            blueprint: slug.clone(),
            version: Some(version.to_owned()),
            credential: Some(credential.to_string()),
            ..world.declare_key_in(&project)
        };
        world.declare_by(&key).await.expect("a declaration").attempt
    };
    let (foreign, first) = (declare("v0").await, declare("v1").await);
    let name = async |version: &str| {
        let found = world.store.catalog.version_fetch(blueprint, version).await.expect("a fetch");
        let found = found.expect("the version is there");
        (found.composition_name, found.id)
    };
    assert_eq!(name("v0").await.0, None, "somebody else installs it");
    let (own, id) = name("v1").await;
    let own = own.expect("a name");
    assert_eq!(own, composition_name::own("servers", "v1", id));
    let composition = async |attempt| {
        let snapshot = world.snapshot(attempt).await;
        snapshot.blueprint.composition(snapshot.read_as.as_deref())
    };
    assert_eq!(composition(foreign).await, None, "the cluster chooses");
    assert_eq!(composition(first).await.as_deref(), Some(&*own), "nothing is installed yet");
    let demand = async || world.demand(home, blueprint).await.expect("it is to be there");
    let established = async |found: Option<&str>| {
        let phase = DefinitionPhase::Established;
        world.record_definitions(&demand().await, phase, found).await.expect("a record");
    };
    let alone = demand().await;
    assert_eq!((alone.composition_name.as_ref(), &*alone.others), (Some(&own), &[][..]));
    established(Some("v1")).await;
    assert_eq!(composition(first).await.as_deref(), Some(&*own));

    // The XRD of the second version brings another API version, in which all are read.
    world.publish_installed(&slug, "v2", true).await;
    let second = declare("v2").await;
    let newer = name("v2").await.0.expect("a name");
    let both = demand().await;
    assert_eq!(both.composition_name.as_ref(), Some(&newer));
    let others: Vec<_> = both.others.iter().map(|other| &other.composition_name).collect();
    assert_eq!(others, [&own]);
    assert_eq!(composition(first).await.as_deref(), Some(&*own), "not installed yet");
    established(Some("v1")).await;
    assert_eq!(composition(first).await.as_deref(), Some(&*own), "withheld, for instance");
    for found in [None, Some("v2")] {
        established(found).await;
        assert_eq!(composition(second).await.as_ref(), Some(&newer));
        assert_eq!(composition(first).await, Some(format!("{own}.v2")));
        assert_eq!(composition(foreign).await, None);
    }
    let both = world.store.broker.attempt_load(&[foreign, second, first]).await.expect("a load");
    let read: Vec<_> =
        both.iter().map(|row| row.as_ref().expect("a row").read_as.clone()).collect();
    assert_eq!(read, [Some("v2".to_owned()), Some("v2".to_owned()), Some("v2".to_owned())]);

    let elsewhere = world.create_managed(&world.fresh_name("cluster"), "eu").await.expect("one");
    let needed = async |cluster: ClusterId| {
        let demand = world.demand(cluster, blueprint).await.expect("it is to be there");
        demand.others.into_iter().map(|other| other.version).collect::<Vec<_>>()
    };
    assert_eq!(needed(elsewhere).await, ["v1"], "somebody may declare it");
    world.retire(&slug, "v1").await.expect("a retirement");
    assert_eq!(needed(home).await, ["v1"], "something was made from it there");
    assert!(needed(elsewhere).await.is_empty());
    world.retire(&slug, "v2").await.expect("a retirement");
    assert_eq!(world.demand(home, blueprint).await, None);
    assert_eq!(composition(first).await, Some(format!("{own}.v2")), "what is installed stays");
}

/// What was installed stays on its cluster and in its row; nothing more is installed.
pub(super) async fn a_deleted_blueprint_or_cluster_demands_nothing(world: &World) {
    let (project, _) = world.furnished_managed().await;
    let placed = world.store.kind::<Project>().fetch(&project, false).await.expect("a fetch");
    let placed = placed.expect("a project").id;
    let placed = world.store.placement.cluster_assignment_fetch(placed).await.expect("a fetch");
    let home = placed.expect("a place").cluster_id;
    let leaving = world.create_managed(&world.fresh_name("cluster"), "eu").await.expect("one");
    let (slug, blueprint) = world.installable().await;
    world.publish_installed(&slug, "v1", true).await;
    let established = async |cluster: ClusterId, demand: &Demand| {
        let demand = Demand { cluster_id: cluster, ..demand.clone() };
        world.record_definitions(&demand, DefinitionPhase::Established, Some("v1")).await
    };
    let demand = world.demand(home, blueprint).await.expect("it is to be there");
    for cluster in [home, leaving] {
        established(cluster, &demand).await.expect("a record");
    }
    world.delete_cluster(&leaving.to_string()).await.expect("a deletion");
    let late = established(leaving, &demand).await;
    assert!(matches!(late, Err(Error::NotFound { kind: ClusterId::KIND })), "{late:?}");
    assert_eq!(world.shown(leaving, blueprint).await, None);

    world.delete_blueprint(&slug).await.expect("a deletion");
    assert_eq!(world.demand(home, blueprint).await, None);
    let late = established(home, &demand).await;
    assert!(matches!(late, Err(Error::NotFound { .. })), "{late:?}");
    let shown = world.shown(home, blueprint).await.expect("what stands is shown");
    assert_eq!((&shown.wanted, shown.definitions.is_some()), (&None, true));
    // Another blueprint that defines the same kind does not go on serving its versions.
    let other = world.create_blueprint_for(Engine::Crossplane, &slug).await.expect("another");
    world.publish_installed(&slug, "v2", true).await;
    let kept = world.demand(home, other).await.expect("it is to be there").kept;
    assert_eq!(kept, BTreeSet::from(["v2".to_owned()]));
}
