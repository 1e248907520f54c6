//! Placements made and cleared, in hand-written and generated cases.

use proptest::prelude::*;
use serde_json::Map;
use uuid::Uuid;

use super::*;
use crate::fixtures::{at, mk_actor};
use crate::ids::{CloudCredentialId, CloudId, ClusterId, ProjectId, Revision};
use crate::placement::provider_config;
use crate::placement::shared_objects::ProviderUse;

const PROJECT: ProjectId = ProjectId::new(Uuid::from_u128(7));
const NAMESPACE: &str = "slipway-project-7";

fn project_namespace(providers: &[&str]) -> ProjectNamespace {
    ProjectNamespace {
        now: at(1_000),
        assignment: ClusterAssignment {
            project_id: PROJECT,
            cluster_id: ClusterId::new(Uuid::from_u128(8)),
            namespace: NAMESPACE.to_owned(),
            namespace_phase: NamespacePhase::Pending,
            withdrawn_at: None,
            status: NamespaceStatus::default(),
            revision: Revision::FIRST,
            created_at: at(900),
            updated_at: at(900),
        },
        project_deleted_at: None,
        resources: i64::try_from(providers.len()).unwrap(),
        uses: providers.iter().map(|provider| used(provider)).collect(),
    }
}

/// `hetzner` is the shared ProviderConfig, with credential 10; `hetzner/11` is that of
/// credential 11.
fn used(what: &str) -> ProviderUse {
    let (provider, own) = match what.split_once('/') {
        Some((provider, number)) => (provider, Some(number.parse().unwrap())),
        None => (what, None),
    };
    let number: u128 = own.unwrap_or(10);
    let credential_id = CloudCredentialId::new(Uuid::from_u128(number));
    ProviderUse {
        provider: provider.to_owned(),
        config: provider_config::name(provider, own.map(|_| credential_id)),
        cloud_id: CloudId::new(Uuid::from_u128(9)),
        endpoint: Map::new(),
        credential_id,
        kv_mount: "kv".to_owned(),
        kv_path: format!("{provider}-{number}"),
    }
}

/// The shared ProviderConfig of hetzner and that of credential 10 read one secret.
const USES: [&str; 5] = ["aws", "hetzner", "hetzner/10", "hetzner/11", "hetzner/12"];

/// Those of the bits that are set.
fn some_uses(bits: usize) -> Vec<&'static str> {
    USES.into_iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, it)| it).collect()
}

fn secret(used: &ProviderUse) -> SharedKey {
    key(SharedKind::ExternalSecret, &format!("secret-{}", used.kv_path), None)
}

fn config(used: &ProviderUse) -> SharedKey {
    key(SharedKind::ProviderConfig, &used.config, Some(&used.provider))
}

fn key(kind: SharedKind, name: &str, provider: Option<&str>) -> SharedKey {
    SharedKey {
        namespace: NAMESPACE.to_owned(),
        kind,
        name: name.to_owned(),
        provider: provider.map(str::to_owned),
    }
}

fn desired(project_namespace: &ProjectNamespace) -> Vec<Desired> {
    if project_namespace.is_leaving() {
        return Vec::new();
    }
    let mut keys = BTreeMap::from([
        (key(SharedKind::Namespace, NAMESPACE, None), None),
        (key(SharedKind::RoleBinding, "viewers", None), None),
        (key(SharedKind::ResourceQuota, "quota", None), None),
    ]);
    for used in &project_namespace.uses {
        keys.insert(secret(used), None);
        keys.insert(config(used), Some(secret(used).name));
    }
    let status = &project_namespace.assignment.status;
    let want = |(key, secret): (SharedKey, Option<String>)| Desired {
        hash: hash(status.removals_of(&key)),
        key,
        secret,
    };
    keys.into_iter().map(want).collect()
}

/// The hash of an object that carries this count of removals.
fn hash(removals: u64) -> String {
    format!("h{removals}")
}

fn there(kind: SharedKind) -> Seen {
    Seen {
        uid: "u".to_owned(),
        version: "1".to_owned(),
        removals: 0,
        owner: Some(PROJECT),
        hash: Some(hash(0)),
        terminating: false,
        ready: (kind == SharedKind::ExternalSecret).then_some(Ok(())),
    }
}

/// A simulated cluster that carries out every action.
struct World {
    project_namespace: ProjectNamespace,
    observed: SharedObjects,
    /// The namespace, if it exists but no list shows it.
    unlabelled: Option<Seen>,
}

impl World {
    fn new(providers: &[&str]) -> Self {
        Self {
            project_namespace: project_namespace(providers),
            observed: SharedObjects::default(),
            unlabelled: None,
        }
    }

    /// Decides, records, acts. Returns the actions.
    fn pass(&mut self) -> Vec<PlacementAction> {
        let mut decision =
            decision(&self.project_namespace, &desired(&self.project_namespace), &self.observed);
        let only_create =
            sends(&self.project_namespace, &self.observed, &mut decision, CREATE_LANDS_WITHIN);
        self.project_namespace.assignment.namespace_phase = decision.phase;
        self.project_namespace.assignment.status = decision.status;
        for action in &decision.actions {
            self.check(action);
            match action {
                PlacementAction::Put(key) => {
                    if let Some(until) = only_create.filter(|_| key.kind == SharedKind::Namespace) {
                        self.observed.answered.insert(key.clone(), until);
                    }
                    let removals = self.project_namespace.assignment.status.removals_of(key);
                    let put = Seen { removals, hash: Some(hash(removals)), ..there(key.kind) };
                    self.observed.objects.insert(key.clone(), put);
                }
                PlacementAction::Prove(key) => {
                    match &self.unlabelled {
                        Some(seen) => {
                            self.observed.objects.insert(key.clone(), seen.clone()).is_none()
                        }
                        None => self.observed.absent.insert(key.clone()),
                    };
                }
                PlacementAction::Remove(removal) | PlacementAction::RemoveIfEmpty(removal) => {
                    self.observed.objects.remove(&removal.key);
                }
            }
        }
        decision.actions
    }

    /// Asserts what must never be done, whatever was observed.
    fn check(&self, action: &PlacementAction) {
        let (PlacementAction::Remove(removal) | PlacementAction::RemoveIfEmpty(removal)) = action
        else {
            return;
        };
        let key = &removal.key;
        let inside = |kind| self.observed.objects.keys().any(|key| key.kind == kind);
        match key.kind {
            SharedKind::ProviderConfig => {
                let used = self.project_namespace.uses.iter().any(|used| config(used) == *key);
                assert!(
                    !used || self.project_namespace.is_leaving(),
                    "a ProviderConfig in use goes"
                );
                assert!(
                    !self.project_namespace.is_leaving() || self.project_namespace.resources == 0
                );
            }
            SharedKind::ExternalSecret if self.project_namespace.is_leaving() => {
                assert!(!inside(SharedKind::ProviderConfig), "a secret before its user");
            }
            SharedKind::ExternalSecret => {
                let mut readers = USES.into_iter().map(used).filter(|used| secret(used) == *key);
                let there = readers.find(|used| self.observed.objects.contains_key(&config(used)));
                assert_eq!(there, None, "a secret before its user");
            }
            SharedKind::Namespace => {
                assert!(
                    self.project_namespace.is_leaving() && self.project_namespace.resources == 0
                );
                assert!(!inside(SharedKind::ProviderConfig) && !inside(SharedKind::ExternalSecret));
            }
            _ => {}
        }
    }

    fn converge(&mut self) {
        for _ in 0..12 {
            self.pass();
        }
    }

    fn phase(&self) -> NamespacePhase {
        self.project_namespace.assignment.namespace_phase
    }

    fn provider(&self, what: &str) -> Option<ProviderPhase> {
        let status = &self.project_namespace.assignment.status;
        status.provider(&config(&used(what))).map(|status| status.phase)
    }

    fn uses(&mut self, what: &[&str]) {
        self.project_namespace.uses = what.iter().map(|what| used(what)).collect();
    }
}

#[test]
fn a_namespace_is_made_in_order_and_cleared_in_the_opposite_one() {
    let mut world = World::new(&["hetzner"]);
    let first = world.pass();
    assert_eq!(first.len(), 3, "{first:?}");
    assert_eq!(world.phase(), NamespacePhase::Provisioning);
    world.converge();
    assert_eq!(world.phase(), NamespacePhase::Ready);
    assert_eq!(world.provider("hetzner"), Some(ProviderPhase::Ready));
    assert!(world.pass().is_empty(), "what is as it should be is left alone");

    world.project_namespace.assignment.withdrawn_at = Some(at(2_000));
    world.converge();
    assert_eq!(world.phase(), NamespacePhase::Terminating, "a resource lives there");
    assert_eq!(world.observed.objects.len(), 5);
    world.project_namespace.resources = 0;
    world.project_namespace.uses.clear();
    world.converge();
    assert_eq!(world.phase(), NamespacePhase::Deleted);
    assert!(!world.observed.objects.keys().any(|key| key.kind == SharedKind::Namespace));
    assert!(world.pass().is_empty());
}

/// As the restore of a deleted project leaves it.
#[test]
fn a_namespace_that_is_gone_is_made_anew_for_a_project_that_came_back() {
    let mut world = World::new(&["hetzner"]);
    world.converge();
    world.project_namespace.project_deleted_at = Some(at(2_000));
    world.project_namespace.resources = 0;
    world.project_namespace.uses.clear();
    world.converge();
    assert_eq!(world.phase(), NamespacePhase::Deleted);

    world.project_namespace.project_deleted_at = None;
    world.uses(&["hetzner"]);
    world.observed.absent.clear();
    world.pass();
    assert_eq!(world.phase(), NamespacePhase::Provisioning);
    world.converge();
    assert_eq!(world.phase(), NamespacePhase::Ready);
    assert_eq!(world.provider("hetzner"), Some(ProviderPhase::Ready));
}

#[test]
fn a_provider_goes_with_its_last_user_and_its_release_is_recorded_first() {
    let mut world = World::new(&["aws", "hetzner"]);
    world.converge();
    world.project_namespace.uses.retain(|used| used.provider == "aws");
    assert!(world.pass().is_empty(), "recorded before anything goes");
    assert_eq!(world.provider("hetzner"), Some(ProviderPhase::Releasing));
    assert_eq!(world.pass().len(), 1);
    world.converge();
    assert_eq!(world.provider("hetzner"), None);
    assert_eq!(world.provider("aws"), Some(ProviderPhase::Ready));
    let left = world.observed.objects.keys().filter(|key| key.name.contains("hetzner"));
    assert_eq!(left.count(), 0);
}

#[test]
fn each_credential_of_a_provider_goes_with_its_last_user() {
    let mut world = World::new(&["hetzner", "hetzner/10", "hetzner/11"]);
    let mut puts = Vec::new();
    (0..6).for_each(|_| puts.extend(world.pass()));
    let put = PlacementAction::Put(secret(&used("hetzner")));
    assert_eq!(puts.iter().filter(|action| **action == put).count(), 1, "one secret for two");
    for what in ["hetzner", "hetzner/10", "hetzner/11"] {
        assert_eq!(world.provider(what), Some(ProviderPhase::Ready), "{what}");
    }
    world.uses(&["hetzner/10"]);
    assert!(world.pass().is_empty(), "recorded before anything goes");
    for what in ["hetzner", "hetzner/11"] {
        assert_eq!(world.provider(what), Some(ProviderPhase::Releasing), "{what}");
    }
    world.converge();
    assert_eq!(world.provider("hetzner/10"), Some(ProviderPhase::Ready));
    let has = |world: &World, key: SharedKey| world.observed.objects.contains_key(&key);
    assert!(has(&world, config(&used("hetzner/10"))) && has(&world, secret(&used("hetzner"))));
    assert!(!has(&world, config(&used("hetzner"))) && !has(&world, config(&used("hetzner/11"))));
    assert!(!has(&world, secret(&used("hetzner/11"))));
    let keys = [config(&used("hetzner")), config(&used("hetzner/11"))];
    let [shared, own] = keys.map(|key| key.counted_as());
    assert_eq!(shared, "ProviderConfig/hetzner", "as earlier versions counted it");
    assert_eq!(own, "ProviderConfig/hetzner/hetzner-00000000000b");
}

/// While the kind cannot be listed, what was made of it is not forgotten.
#[test]
fn a_release_waits_for_a_kind_that_cannot_be_listed() {
    let mut world = World::new(&["hetzner"]);
    world.converge();
    let there = world.observed.objects.clone();
    let source = config(&used("hetzner")).source();
    world.observed.unreadable.insert(source, "forbidden".to_owned());
    world.observed.objects.remove(&config(&used("hetzner")));
    world.uses(&[]);
    world.converge();
    assert_eq!(world.provider("hetzner"), Some(ProviderPhase::Releasing));
    assert!(world.observed.objects.contains_key(&secret(&used("hetzner"))));
    world.observed = SharedObjects { objects: there, ..SharedObjects::default() };
    world.converge();
    assert_eq!((world.provider("hetzner"), world.observed.objects.len()), (None, 3));
}

#[test]
fn one_that_is_used_again_is_put_back_before_it_counts() {
    let mut world = World::new(&["hetzner"]);
    world.converge();
    world.project_namespace.uses.clear();
    world.pass();
    world.pass();
    world.project_namespace.uses.push(used("hetzner"));
    let seen = world.provider("hetzner");
    assert_ne!(seen, Some(ProviderPhase::Ready));
    world.converge();
    assert_eq!(world.provider("hetzner"), Some(ProviderPhase::Ready));
}

#[test]
fn a_missing_secret_holds_its_provider_and_nothing_else() {
    let mut world = World::new(&["aws", "hetzner"]);
    world.converge();
    let secret = secret(&used("aws"));
    world.observed.objects.get_mut(&secret).unwrap().ready = Some(Err("no such path".to_owned()));
    world.pass();
    assert_eq!(world.phase(), NamespacePhase::Ready);
    assert_eq!(world.provider("aws"), Some(ProviderPhase::Waiting));
    assert_eq!(world.provider("hetzner"), Some(ProviderPhase::Ready));
    let status = &world.project_namespace.assignment.status;
    let status = status.provider(&config(&used("aws"))).unwrap();
    assert!(status.problem.as_ref().unwrap().contains("no such path"), "{status:?}");
}

#[test]
fn what_is_not_ours_is_left_alone_and_said() {
    let mut world = World::new(&[]);
    let namespace = key(SharedKind::Namespace, NAMESPACE, None);
    let foreign = Seen { owner: None, ..there(SharedKind::Namespace) };
    world.observed.objects.insert(namespace, foreign);
    assert!(world.pass().is_empty());
    assert_eq!(world.phase(), NamespacePhase::Pending);
    assert_eq!(world.project_namespace.assignment.status.problems.len(), 1);
}

#[test]
fn a_namespace_that_somebody_deletes_is_waited_for_and_made_anew() {
    let mut world = World::new(&["hetzner"]);
    world.converge();
    let namespace = key(SharedKind::Namespace, NAMESPACE, None);
    world.observed.objects.get_mut(&namespace).unwrap().terminating = true;
    assert!(world.pass().is_empty());
    assert_eq!(world.phase(), NamespacePhase::Degraded);
    assert_eq!(world.provider("hetzner"), Some(ProviderPhase::Waiting));
    world.observed.objects.clear();
    world.converge();
    assert_eq!(world.phase(), NamespacePhase::Ready);
    assert_eq!(world.provider("hetzner"), Some(ProviderPhase::Ready));
}

#[test]
fn what_cannot_be_listed_is_neither_made_nor_taken_for_gone() {
    let mut world = World::new(&["hetzner"]);
    world.converge();
    let source = Source { kind: SharedKind::ProviderConfig, provider: Some("hetzner".to_owned()) };
    world.observed.unreadable.insert(source.clone(), "forbidden".to_owned());
    world.observed.objects.retain(|key, _| key.kind != SharedKind::ProviderConfig);
    assert!(world.pass().is_empty());
    assert_eq!(world.provider("hetzner"), Some(ProviderPhase::Waiting));
    world.project_namespace.uses.clear();
    world.project_namespace.resources = 0;
    world.project_namespace.assignment.status.providers = vec![ProviderStatus {
        provider: "hetzner".to_owned(),
        config: "hetzner".to_owned(),
        credential_id: CloudCredentialId::new(Uuid::from_u128(10)),
        phase: ProviderPhase::Releasing,
        problem: None,
    }];
    world.project_namespace.assignment.withdrawn_at = Some(at(2_000));
    world.converge();
    assert_eq!(world.phase(), NamespacePhase::Terminating, "its secret must outlive it");
}

#[test]
fn a_namespace_that_no_list_shows_is_gone_only_on_the_servers_word() {
    for (uid, ours) in [("u", true), ("another", false)] {
        let mut world = World::new(&[]);
        world.converge();
        world.observed.objects.clear();
        let unlabelled = Seen { uid: uid.to_owned(), owner: None, ..there(SharedKind::Namespace) };
        world.unlabelled = Some(unlabelled);
        world.project_namespace.assignment.withdrawn_at = Some(at(2_000));
        world.converge();
        if ours {
            assert_eq!(world.phase(), NamespacePhase::Terminating, "it stands");
            let problems = &world.project_namespace.assignment.status.problems;
            assert!(problems.iter().any(|problem| problem.contains("labels")), "{problems:?}");
            world.observed.objects.clear();
            world.unlabelled = None;
            world.converge();
        }
        assert_eq!(world.phase(), NamespacePhase::Deleted);
    }
}

#[test]
fn nothing_is_written_where_nothing_changed() {
    let mut world = World::new(&["hetzner"]);
    world.converge();
    let same =
        decision(&world.project_namespace, &desired(&world.project_namespace), &world.observed);
    assert!(record(&world.project_namespace, &same, &mk_actor()).is_empty());
    let other = PlacementDecision { phase: NamespacePhase::Degraded, ..same };
    let commit = record(&world.project_namespace, &other, &mk_actor());
    assert_eq!((commit.writes.len(), commit.audit.len()), (1, 1));
}

proptest! {
    /// Objects vanish, change or are deleted in any order: once that stops, the
    /// placement still converges, and no forbidden action happens on the way
    /// (see [`World::check`]).
    #[test]
    fn any_fair_world_converges(
        noise in proptest::collection::vec((0usize..32, 0usize..4), 0..30),
        used_at_the_end in 0usize..32,
        leaves in any::<bool>(),
    ) {
        let mut world = World::new(&["aws", "hetzner", "hetzner/11"]);
        for (at, what) in noise {
            world.pass();
            let key = world.observed.objects.keys().nth(at % 13).cloned();
            if let Some(key) = key {
                match what {
                    0 => { world.observed.objects.remove(&key); }
                    1 => world.observed.objects.get_mut(&key).unwrap().hash = None,
                    2 => world.observed.objects.get_mut(&key).unwrap().terminating = true,
                    _ => world.uses(&some_uses(at)),
                }
            }
        }
        // Terminating objects are gone at last.
        world.observed.objects.retain(|_, seen| !seen.terminating);
        let at_the_end = if leaves { Vec::new() } else { some_uses(used_at_the_end) };
        world.uses(&at_the_end);
        world.project_namespace.resources = i64::try_from(at_the_end.len()).unwrap();
        if leaves {
            world.project_namespace.project_deleted_at = Some(world.project_namespace.now);
        }
        world.converge();
        world.project_namespace.now = world.project_namespace.now.plus(CREATE_LANDS_WITHIN * 2);
        world.converge();
        if leaves {
            prop_assert_eq!(world.phase(), NamespacePhase::Deleted);
        } else {
            prop_assert_eq!(world.phase(), NamespacePhase::Ready);
            for what in USES {
                let ready = at_the_end.contains(&what).then_some(ProviderPhase::Ready);
                prop_assert_eq!(world.provider(what), ready, "{}", what);
            }
            let wanted: Vec<_> =
                desired(&world.project_namespace).into_iter().map(|want| want.key).collect();
            let there: Vec<_> = world.observed.objects.keys().cloned().collect();
            prop_assert_eq!(there, wanted, "all of it, and nothing else");
        }
    }
}

mod late;
