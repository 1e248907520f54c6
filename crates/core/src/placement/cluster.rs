//! A management cluster, and the assignment of projects to it. The placement of a
//! project is fixed while it owns resources: their substrate exists there and
//! nowhere else.

use std::fmt;

use serde_json::{Value, json};

use crate::access::audit::{About, Actor};
use crate::catalog::Name;
use crate::catalog::blueprint_version::Engine;
use crate::catalog::project::Project;
use crate::commit::Commit;
use crate::deletion::request::Deletable;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{ClusterId, DeletionId, ProjectId, Revision};
use crate::kind::{about, audited, existing, free, kind, unknown};
use crate::placement::PlacementWrite;
use crate::placement::namespace::{NamespacePhase, NamespaceStatus};
use crate::precondition::Expected;
use crate::text::{Handle, InvalidText};
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub id: ClusterId,
    /// Unique among the not deleted.
    pub name: Name,
    pub engine: Engine,
    /// The identity that the serving process observed. `None` until then.
    pub substrate_uid: Option<String>,
    /// A project namespace is this prefix followed by the id of the project.
    pub namespace_prefix: NamespacePrefix,
    /// Where it is, for placing projects by region.
    pub region: Option<Name>,
    /// How it is reached; `None` where the engine needs no access.
    pub access: Option<ClusterAccess>,
    /// The result of the last verification. `None` before the first one.
    pub verification: Option<Verification>,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Cluster, ClusterId, ClusterNotFound);

/// How a control plane reaches a cluster. Credentials are referenced and never
/// stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterAccess {
    /// With the service account of its own pod.
    InCluster,
    /// With the file of this name in its folder of kubeconfigs.
    Kubeconfig(Name),
    /// A project at Hetzner Cloud, with the API token in the file of this name in its folder of
    /// tokens; where its API is, unless it is the provider's own.
    Hetzner { token: Name, endpoint: Option<String> },
}

impl ClusterAccess {
    const IN_CLUSTER: &str = "in-cluster";
    const KUBECONFIG: &str = "kubeconfig/";
    const HETZNER: &str = "hetzner/";
    const ENDPOINT_MAX: usize = 253;

    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        if text == Self::IN_CLUSTER {
            return Ok(Self::InCluster);
        }
        if let Some(rest) = text.strip_prefix(Self::HETZNER) {
            return Self::parse_hetzner(rest);
        }
        let name =
            text.strip_prefix(Self::KUBECONFIG).and_then(|name| Name::parse("access", name).ok());
        name.map(Self::Kubeconfig).ok_or_else(|| {
            InvalidText::new(
                "access",
                "must be in-cluster, or kubeconfig/ and the name of a file in the control plane's kubeconfig_dir, such as kubeconfig/east, or hetzner/ and the name of a file in its provider_token_dir",
            )
        })
    }

    fn parse_hetzner(text: &str) -> Result<Self, InvalidText> {
        let (name, endpoint) = match text.split_once('@') {
            Some((name, endpoint)) => (name, Some(endpoint)),
            None => (text, None),
        };
        // The engine checks the address as a URL before it sends anything there.
        let fits = |address: &&str| {
            let plain = address.chars().all(|c| c.is_ascii_graphic() && !"@?#".contains(c));
            let loopback = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
            let leads = address.starts_with("https://")
                || loopback.iter().any(|host| {
                    let rest = address.strip_prefix(host);
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
                });
            plain && leads && address.len() <= Self::ENDPOINT_MAX
        };
        let token = Name::parse("access", name).ok();
        let endpoint = endpoint.map(|address| Some(address).filter(fits).ok_or(()));
        match (token, endpoint.transpose()) {
            (Some(token), Ok(endpoint)) => {
                Ok(Self::Hetzner { token, endpoint: endpoint.map(str::to_owned) })
            }
            _ => Err(InvalidText::new(
                "access",
                "must be hetzner/ and the name of a file in the control plane's provider_token_dir, such as hetzner/shop; for another address of the API, @ and its URL follow (https, or http for loopback)",
            )),
        }
    }
}

/// What makes a control plane serve a cluster with this access.
pub fn how_to_serve(access: Option<&ClusterAccess>) -> String {
    match access {
        Some(ClusterAccess::Kubeconfig(name)) => format!(
            "put a kubeconfig for it as the file `{name}` into the kubeconfig_dir of a control plane, which then serves it within seconds"
        ),
        Some(ClusterAccess::Hetzner { token, .. }) => format!(
            "put an API token of the project as the file `{token}` into the provider_token_dir of a control plane, which then serves it within seconds"
        ),
        Some(ClusterAccess::InCluster) => {
            "run a control plane in a pod of that cluster; it uses the account of the pod"
                .to_owned()
        }
        None => "start the control plane on the host with its substrate root".to_owned(),
    }
}

impl fmt::Display for ClusterAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InCluster => f.write_str(Self::IN_CLUSTER),
            Self::Kubeconfig(name) => write!(f, "{}{name}", Self::KUBECONFIG),
            Self::Hetzner { token, endpoint: None } => write!(f, "{}{token}", Self::HETZNER),
            Self::Hetzner { token, endpoint: Some(endpoint) } => {
                write!(f, "{}{token}@{endpoint}", Self::HETZNER)
            }
        }
    }
}

/// The result of probing the cluster itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    pub at: Timestamp,
    /// Why the cluster cannot be used, if it cannot.
    pub problem: Option<String>,
    /// Versions and known kinds, for people.
    pub facts: Value,
}

/// The prefix of project namespaces. It can be chosen: compositions parse it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacePrefix(String);

impl NamespacePrefix {
    pub const DEFAULT: &str = "slipway-project-";

    /// With the 36 characters of an id behind it, it must be a DNS label.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let longest = Handle::MAX_LENGTH - 36;
        if text.len() > longest || Handle::parse(&format!("{text}0")).is_err() {
            return Err(InvalidText::new(
                "namespace_prefix",
                format!(
                    "must be at most {longest} lowercase letters, digits or hyphens, starting with a letter or digit"
                ),
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// For rows.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The placement of a project. Immutable while the project owns resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterAssignment {
    pub project_id: ProjectId,
    pub cluster_id: ClusterId,
    pub namespace: String,
    pub namespace_phase: NamespacePhase,
    /// When somebody asked to withdraw the project from its cluster.
    pub withdrawn_at: Option<Timestamp>,
    pub status: NamespaceStatus,
    pub revision: Revision,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl ClusterAssignment {
    /// Whether the placement loop created something on the cluster, or may
    /// have. The local engine makes its folders itself.
    pub fn is_made_by_placement(&self) -> bool {
        // The loop records its first step before it takes it, so a Pending
        // assignment has nothing on the cluster.
        use NamespacePhase::{Degraded, Provisioning, Terminating};
        self.status.namespace_uid.is_some()
            || matches!(self.namespace_phase, Provisioning | Degraded | Terminating)
    }
}

impl Cluster {
    pub fn namespace(&self, project: ProjectId) -> String {
        format!("{}{project}", self.namespace_prefix.as_str())
    }

    /// The first phase of a project namespace. The local engine creates it
    /// itself once a process serves the cluster, which is when its identity is
    /// known; a project at Hetzner Cloud has none to create, and the engine itself
    /// waits for the identity; elsewhere somebody has to create it first.
    pub fn first_phase(&self) -> NamespacePhase {
        match (self.engine, &self.substrate_uid) {
            (Engine::Local | Engine::Manual, Some(_)) | (Engine::Hetzner, _) => {
                NamespacePhase::Ready
            }
            (Engine::Local | Engine::Crossplane | Engine::Manual, _) => NamespacePhase::Pending,
        }
    }
}

/// A cluster, its row locked.
#[derive(Debug, Clone)]
pub struct ClusterSnapshot {
    pub now: Timestamp,
    pub cluster: Option<Cluster>,
    /// Projects that are placed on it.
    pub projects: i64,
    /// Attempts of its partition that are not proven gone.
    pub attempts: i64,
    /// Servers of workspaces on it that are not deleted.
    pub servers: i64,
}

#[derive(Debug, Clone)]
pub struct NewCluster {
    pub id: ClusterId,
    pub name: Name,
    pub engine: Engine,
    pub namespace_prefix: NamespacePrefix,
    pub region: Option<Name>,
    pub access: Option<ClusterAccess>,
}

/// Creates it without `substrate_uid`: the replica that first serves the cluster sets it.
/// One of engine manual is nothing but this row, so its id is its identity.
pub fn create(
    snapshot: &ClusterSnapshot,
    new: &NewCluster,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    free(&snapshot.cluster, "name", new.name.as_str())?;
    refuse_access(new.engine, new.access.as_ref())?;
    let cluster = Cluster {
        id: new.id,
        name: new.name.clone(),
        engine: new.engine,
        substrate_uid: (new.engine == Engine::Manual).then(|| new.id.to_string()),
        namespace_prefix: new.namespace_prefix.clone(),
        region: new.region.clone(),
        access: new.access.clone(),
        verification: None,
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "name": cluster.name, "engine": cluster.engine });
    let about = about(&cluster);
    let write = PlacementWrite::ClusterInsert(cluster);
    Ok(audited(write, "cluster.create", about, actor, snapshot.now, details))
}

fn refuse_access(engine: Engine, access: Option<&ClusterAccess>) -> Result<(), Refusal> {
    match (engine, access) {
        (Engine::Crossplane, None) => {
            let problem =
                "is missing: say how the cluster is reached, in-cluster or kubeconfig/<name>";
            Err(Refusal::invalid("access", problem))
        }
        (Engine::Hetzner, None) => {
            let problem = "is missing: say where its API token is, hetzner/<name>";
            Err(Refusal::invalid("access", problem))
        }
        (Engine::Local | Engine::Manual, Some(_)) => {
            let problem = format!(
                "is for the engines crossplane and hetzner; a cluster of the engine {engine} takes none"
            );
            Err(Refusal::invalid("access", problem))
        }
        (Engine::Crossplane, Some(ClusterAccess::Hetzner { .. })) => Err(Refusal::invalid(
            "access",
            "is for the engine hetzner; a cluster of the engine crossplane takes in-cluster or kubeconfig/<name>",
        )),
        (Engine::Hetzner, Some(ClusterAccess::InCluster | ClusterAccess::Kubeconfig(_))) => {
            let problem =
                "is for the engine crossplane; one of the engine hetzner takes hetzner/<name>";
            Err(Refusal::invalid("access", problem))
        }
        _ => Ok(()),
    }
}

/// What to change; the rest stays.
#[derive(Debug, Clone, Default)]
pub struct ClusterChange {
    /// `Some(None)` takes the region away.
    pub region: Option<Option<Name>>,
    pub access: Option<ClusterAccess>,
    pub namespace_prefix: Option<NamespacePrefix>,
}

/// The namespaces that exist keep their names: a new prefix is for projects that are
/// placed later.
pub fn update(
    snapshot: &ClusterSnapshot,
    change: &ClusterChange,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.cluster, expected)?;
    let mut after = before.clone();
    if let Some(region) = &change.region {
        after.region.clone_from(region);
    }
    if let Some(access) = &change.access {
        refuse_access(before.engine, Some(access))?;
        after.access = Some(access.clone());
    }
    if let Some(prefix) = &change.namespace_prefix {
        after.namespace_prefix = prefix.clone();
    }
    if after == *before {
        return Ok(Commit::default());
    }
    let shown = |cluster: &Cluster| {
        json!({
            "region": cluster.region,
            "access": cluster.access.as_ref().map(ToString::to_string),
            "namespace_prefix": cluster.namespace_prefix.as_str(),
        })
    };
    let details = json!({ "before": shown(before), "after": shown(&after) });
    let write = PlacementWrite::ClusterUpdate(after);
    Ok(audited(write, "cluster.update", about(before), actor, snapshot.now, details))
}

/// Only the row goes: what Slipway installed on the cluster stays there.
impl Deletable for Cluster {
    type Snapshot = ClusterSnapshot;
    const DELETE: &'static str = "cluster.delete";

    fn found(snapshot: &ClusterSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.cluster, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn free(&self, snapshot: &ClusterSnapshot, _cascade: bool) -> Result<(), Refusal> {
        let in_use = |text| Refusal::new(ErrorKind::ClusterInUse, text);
        if self.engine == Engine::Local && self.substrate_uid.is_some() {
            return Err(in_use(format!(
                "cluster `{}` is served by `slipway up` itself, which would register it again at its next start; withdraw the projects from it instead",
                self.name
            )));
        }
        if snapshot.servers > 0 {
            let message = format!(
                "{} server(s) on cluster `{}` belong to workspaces; take those down first (`slipway workspace list`)",
                snapshot.servers, self.name
            );
            let details = json!({ "servers": snapshot.servers });
            return Err(Refusal::new(ErrorKind::OwnedByWorkspace, message).with(details));
        }
        let (projects, attempts) = (snapshot.projects, snapshot.attempts);
        if projects == 0 && attempts == 0 {
            return Ok(());
        }
        Err(in_use(format!(
            "{projects} project(s) are placed on cluster `{}` and {attempts} attempt(s) on it are not proven gone; delete their resources, then `slipway cluster unassign` each project (`slipway cluster assignments` lists them)",
            self.name
        ))
        .with(json!({ "projects": projects, "attempts": attempts })))
    }
}

/// A project, its row locked (so that nobody declares into it meanwhile), its
/// placement, and the requested cluster, which is locked against deletion.
#[derive(Debug, Clone)]
pub struct ClusterAssignmentSnapshot {
    pub now: Timestamp,
    pub project: Option<Project>,
    pub cluster: Option<Cluster>,
    pub assignment: Option<ClusterAssignment>,
    /// Resources of the project that are not deleted.
    pub resources: i64,
    /// The engines of their blueprints.
    pub engines: Vec<Engine>,
}

/// Assigning to the same cluster again changes nothing.
pub fn assign(
    snapshot: &ClusterAssignmentSnapshot,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let project = existing(&snapshot.project, Expected::Any)?;
    let Some(cluster) = &snapshot.cluster else {
        return Err(unknown(ErrorKind::ClusterNotFound, "cluster").at("cluster"));
    };
    let placed = |revision, created_at| ClusterAssignment {
        project_id: project.id,
        cluster_id: cluster.id,
        namespace: cluster.namespace(project.id),
        namespace_phase: cluster.first_phase(),
        withdrawn_at: None,
        status: NamespaceStatus::default(),
        revision,
        created_at,
        updated_at: snapshot.now,
    };
    let (write, from) = match &snapshot.assignment {
        None => {
            refuse_engine(snapshot, project, cluster)?;
            (PlacementWrite::ClusterAssignmentInsert(placed(Revision::FIRST, snapshot.now)), None)
        }
        Some(assignment) => {
            expected.check("cluster assignment", assignment.revision)?;
            if assignment.cluster_id == cluster.id && assignment.withdrawn_at.is_none() {
                return Ok(Commit::default());
            }
            refuse_owner(snapshot, project)?;
            refuse_occupied(assignment, project)?;
            refuse_engine(snapshot, project, cluster)?;
            let write = PlacementWrite::ClusterAssignmentUpdate(placed(
                assignment.revision,
                assignment.created_at,
            ));
            (write, Some(assignment.cluster_id))
        }
    };
    let details = json!({ "project_id": project.id, "from_cluster_id": from });
    let about = about(cluster).of(project.id);
    Ok(audited(write, "cluster.assign", about, actor, snapshot.now, details))
}

pub fn withdraw(
    snapshot: &ClusterAssignmentSnapshot,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let project = existing(&snapshot.project, Expected::Any)?;
    let Some(assignment) = &snapshot.assignment else {
        return Err(unknown(ErrorKind::AssignmentNotFound, "assignment"));
    };
    expected.check("cluster assignment", assignment.revision)?;
    if assignment.withdrawn_at.is_some() {
        return Ok(Commit::default());
    }
    refuse_owner(snapshot, project)?;
    // The placement loop takes down what it made there first.
    let write = if assignment.is_made_by_placement() {
        PlacementWrite::ClusterAssignmentUpdate(ClusterAssignment {
            withdrawn_at: Some(snapshot.now),
            ..assignment.clone()
        })
    } else {
        PlacementWrite::ClusterAssignmentDelete(assignment.clone())
    };
    let about = About::new(assignment.cluster_id).of(project.id);
    let details = json!({ "project_id": project.id });
    Ok(audited(write, "cluster.withdraw", about, actor, snapshot.now, details))
}

fn refuse_owner(snapshot: &ClusterAssignmentSnapshot, project: &Project) -> Result<(), Refusal> {
    if snapshot.resources == 0 {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorKind::ClusterAssignmentImmutable,
        format!(
            "project `{}` owns {} resource(s) on its cluster and stays there; delete them and wait until their absence is proven a second time, one lease after Deleted",
            project.name, snapshot.resources
        ),
    )
    .with(json!({ "resources": snapshot.resources })))
}

/// Refuses a cluster that could serve nothing, or not what the project has already.
fn refuse_engine(
    snapshot: &ClusterAssignmentSnapshot,
    project: &Project,
    cluster: &Cluster,
) -> Result<(), Refusal> {
    let Cluster { name, engine, .. } = cluster;
    let message = if !engine.is_offered() {
        format!(
            "cluster `{name}` is of engine {engine}, which this version does not have; name another cluster"
        )
    } else if let Some(other) = snapshot.engines.iter().find(|other| *other != engine) {
        format!(
            "project `{}` has resources of engine {other}, and cluster `{name}` serves {engine}; name a cluster of engine {other}, or delete those resources first",
            project.name
        )
    } else {
        return Ok(());
    };
    let details = json!({ "cluster_engine": engine, "engines": snapshot.engines });
    Err(Refusal::new(ErrorKind::EngineNotServed, message).at("cluster").with(details))
}

/// Refuses a move that would leave the old namespace behind.
fn refuse_occupied(assignment: &ClusterAssignment, project: &Project) -> Result<(), Refusal> {
    if !assignment.is_made_by_placement() || assignment.namespace_phase == NamespacePhase::Deleted {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorKind::ClusterAssignmentImmutable,
        format!(
            "namespace {} of project `{}` is {} on its cluster; take the project from there first (`slipway cluster unassign`) and wait until it is Deleted",
            assignment.namespace, project.name, assignment.namespace_phase
        ),
    )
    .with(json!({ "namespace": assignment.namespace, "namespace_phase": assignment.namespace_phase })))
}

/// A cluster of the requested region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub id: ClusterId,
    /// Its `substrate_uid` is known, and no verification found a problem.
    pub usable: bool,
    /// How many projects are placed there.
    pub projects: i64,
    /// Whether the project to place is one of them.
    pub is_home: bool,
}

/// The cluster where the project is already, else the usable one with the
/// fewest projects; of equals the oldest.
pub fn choose(candidates: &[Candidate]) -> Option<ClusterId> {
    let home = candidates.iter().find(|candidate| candidate.is_home);
    let emptiest = || {
        let usable = candidates.iter().filter(|candidate| candidate.usable);
        usable.min_by_key(|candidate| (candidate.projects, candidate.id))
    };
    home.or_else(emptiest).map(|candidate| candidate.id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::commit::Write;
    use crate::deletion::door::Door;
    use crate::deletion::request::request;
    use crate::fixtures::catalog::{mk_ask, mk_cluster, mk_project};
    use crate::fixtures::{at, mk_actor};

    #[test]
    fn the_default_prefix_is_a_valid_one() {
        assert!(NamespacePrefix::parse(NamespacePrefix::DEFAULT).is_ok());
        for bad in ["-a", "A", &"x".repeat(28)] {
            assert!(NamespacePrefix::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn whatever_prefix_is_taken_the_namespace_is_a_label(text in "[a-z0-9-]{0,30}") {
            if let Ok(prefix) = NamespacePrefix::parse(&text) {
                let namespace = format!("{}{}", prefix.as_str(), Uuid::from_u128(7));
                prop_assert!(Handle::parse(&namespace).is_ok(), "{}", namespace);
            }
        }
    }

    fn managed() -> ClusterSnapshot {
        let access = Some(ClusterAccess::InCluster);
        let cluster = Cluster { engine: Engine::Crossplane, access, ..mk_cluster() };
        ClusterSnapshot {
            now: at(1_000),
            cluster: Some(cluster),
            projects: 0,
            attempts: 0,
            servers: 0,
        }
    }

    #[test]
    fn a_change_touches_what_it_names_and_nothing_else() {
        let snapshot = managed();
        let nothing = update(&snapshot, &ClusterChange::default(), Expected::Any, &mk_actor());
        assert_eq!(nothing.unwrap(), Commit::default());
        let change = ClusterChange {
            region: Some(Some(Name::parse("region", "eu").unwrap())),
            access: Some(ClusterAccess::parse("kubeconfig/west").unwrap()),
            namespace_prefix: None,
        };
        let commit = update(&snapshot, &change, Expected::Any, &mk_actor()).unwrap();
        let [Write::Placement(PlacementWrite::ClusterUpdate(after))] = commit.writes.as_slice()
        else {
            panic!("{commit:?}")
        };
        let before = snapshot.cluster.clone().unwrap();
        let expected = Cluster {
            region: change.region.clone().unwrap(),
            access: change.access.clone(),
            ..before.clone()
        };
        assert_eq!((after, commit.audit.len()), (&expected, 1));
        let stale = Expected::Exactly(Revision(99));
        let refusal = update(&snapshot, &change, stale, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RevisionStale);
        let local = Cluster { engine: Engine::Local, ..before };
        let local = ClusterSnapshot { cluster: Some(local), ..snapshot };
        let refusal = update(&local, &change, Expected::Any, &mk_actor()).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("access"));
    }

    #[test]
    fn a_cluster_stays_while_something_is_on_it() {
        let ask = mk_ask();
        let refused = |snapshot: &ClusterSnapshot| {
            request::<Cluster>(snapshot, &Door::default(), &ask, &mk_actor())
                .map(|_| ())
                .unwrap_err()
                .kind
        };
        let free = managed();
        let asked = request::<Cluster>(&free, &Door::default(), &ask, &mk_actor()).unwrap();
        let commit = asked.commit;
        assert_eq!((commit.writes.len(), commit.audit.len()), (2, 1), "the row and the record");
        for used in [
            ClusterSnapshot { projects: 1, ..free.clone() },
            ClusterSnapshot { attempts: 1, ..free.clone() },
            ClusterSnapshot { cluster: Some(mk_cluster()), ..free.clone() },
        ] {
            assert_eq!(refused(&used), ErrorKind::ClusterInUse);
        }
        let owned = ClusterSnapshot { servers: 2, projects: 1, ..free.clone() };
        assert_eq!(refused(&owned), ErrorKind::OwnedByWorkspace);
        let gone = ClusterSnapshot { cluster: None, ..free };
        assert_eq!(refused(&gone), ErrorKind::ClusterNotFound);
    }

    fn snapshot(cluster: Cluster) -> ClusterAssignmentSnapshot {
        ClusterAssignmentSnapshot {
            now: at(1_000),
            project: Some(mk_project()),
            cluster: Some(cluster),
            assignment: None,
            resources: 0,
            engines: Vec::new(),
        }
    }

    #[test]
    fn a_cluster_that_cannot_serve_the_project_is_refused() {
        let crossplane = Cluster { engine: Engine::Crossplane, ..mk_cluster() };
        let owner = |cluster, engines| ClusterAssignmentSnapshot {
            resources: 1,
            engines,
            ..snapshot(cluster)
        };
        let refused = |snapshot: &ClusterAssignmentSnapshot| {
            let refusal = assign(snapshot, Expected::Any, &mk_actor()).unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some("cluster"));
            refusal.kind
        };
        let wrong = owner(crossplane.clone(), vec![Engine::Local]);
        assert_eq!(refused(&wrong), ErrorKind::EngineNotServed);
        let mixed = owner(crossplane.clone(), vec![Engine::Crossplane, Engine::Local]);
        assert_eq!(refused(&mixed), ErrorKind::EngineNotServed);
        let right = owner(crossplane, vec![Engine::Crossplane]);
        assert!(assign(&right, Expected::Any, &mk_actor()).is_ok());
    }

    #[test]
    fn an_access_is_read_as_it_is_written_and_fits_its_engine() {
        for text in [
            "in-cluster",
            "kubeconfig/east",
            "hetzner/shop",
            "hetzner/shop@https://api.example/v1",
            "hetzner/shop@http://127.0.0.1:4000/v1",
        ] {
            let access = ClusterAccess::parse(text).unwrap();
            assert_eq!(access.to_string(), text);
            let is_hetzner = matches!(access, ClusterAccess::Hetzner { .. });
            for (engine, fits) in [
                (Engine::Local, false),
                (Engine::Manual, false),
                (Engine::Crossplane, !is_hetzner),
                (Engine::Hetzner, is_hetzner),
            ] {
                assert_eq!(refuse_access(engine, Some(&access)).is_ok(), fits, "{engine} {text}");
            }
        }
        for bad in [
            "hetzner/",
            "hetzner/../x",
            "hetzner/shop@",
            "hetzner/shop@http://api.example/v1",
            "hetzner/shop@http://127.0.0.1.example/v1",
            "hetzner/shop@https://user@api.example",
            "hetzner/shop@https://api.example/v1?x",
        ] {
            assert!(ClusterAccess::parse(bad).is_err(), "{bad}");
        }
    }

    fn placed(commit: &Commit) -> ClusterAssignment {
        let Write::Placement(write) = &commit.writes[0] else { panic!("{commit:?}") };
        match write {
            PlacementWrite::ClusterAssignmentInsert(assignment)
            | PlacementWrite::ClusterAssignmentUpdate(assignment) => assignment.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_served_cluster_is_ready_at_once() {
        let served = assign(&snapshot(mk_cluster()), Expected::Any, &mk_actor()).unwrap();
        let assignment = placed(&served);
        assert_eq!(assignment.namespace_phase, NamespacePhase::Ready);
        assert_eq!(assignment.namespace, format!("slipway-project-{}", mk_project().id));
        let waiting = Cluster { substrate_uid: None, ..mk_cluster() };
        let waits = assign(&snapshot(waiting), Expected::Any, &mk_actor()).unwrap();
        assert_eq!(placed(&waits).namespace_phase, NamespacePhase::Pending);
    }

    #[test]
    fn a_project_that_owns_resources_stays_where_it_is() {
        let first = assign(&snapshot(mk_cluster()), Expected::Any, &mk_actor()).unwrap();
        let elsewhere = Cluster { id: ClusterId::new(Uuid::from_u128(99)), ..mk_cluster() };
        let owner = ClusterAssignmentSnapshot {
            assignment: Some(placed(&first)),
            resources: 1,
            ..snapshot(elsewhere)
        };
        for refused in [
            assign(&owner, Expected::Any, &mk_actor()),
            withdraw(&owner, Expected::Any, &mk_actor()),
        ] {
            assert_eq!(refused.unwrap_err().kind, ErrorKind::ClusterAssignmentImmutable);
        }
        let same = ClusterAssignmentSnapshot { cluster: Some(mk_cluster()), ..owner.clone() };
        assert!(assign(&same, Expected::Any, &mk_actor()).unwrap().is_empty());
        let free = ClusterAssignmentSnapshot { resources: 0, ..owner };
        assert!(assign(&free, Expected::Any, &mk_actor()).is_ok());
        assert!(withdraw(&free, Expected::Any, &mk_actor()).is_ok());
    }

    fn candidate(id: u128, usable: bool, projects: i64) -> Candidate {
        Candidate { id: ClusterId::new(Uuid::from_u128(id)), usable, projects, is_home: false }
    }

    #[test]
    fn the_emptiest_usable_one_is_chosen_and_home_before_all() {
        let mut all = vec![candidate(1, false, 0), candidate(3, true, 2), candidate(2, true, 2)];
        assert_eq!(choose(&all), Some(all[2].id));
        all[0].is_home = true;
        assert_eq!(choose(&all), Some(all[0].id), "to ask twice is to ask once");
        assert_eq!(choose(&all[..0]), None);
        assert_eq!(choose(&[candidate(1, false, 0)]), None);
    }
}
