//! Removals that land late: an API server with versions, removals under way, and
//! replicas that decide on observations of any age.

use std::collections::BTreeSet;

use super::*;

/// An object on the simulated API server.
#[derive(Debug, Clone)]
struct Object {
    uid: u64,
    version: u64,
    removals: u64,
}

/// A cluster where a request lands when the test says so.
struct Late {
    project_namespace: ProjectNamespace,
    objects: BTreeMap<SharedKey, Object>,
    /// Counts uids and versions; neither is ever used twice.
    counter: u64,
    /// Removals that were sent and have not landed.
    removals: Vec<Removal>,
    /// Writes that were sent and have not landed, with the object that was read.
    puts: Vec<(SharedKey, Option<Object>, u64)>,
    /// Earlier observations, on which a slow replica may still decide.
    observations: Vec<SharedObjects>,
    /// What admitted resources use, as [`used`] reads it.
    admitted: BTreeSet<&'static str>,
}

impl Late {
    fn new() -> Self {
        Self {
            project_namespace: project_namespace(&["aws", "hetzner"]),
            objects: BTreeMap::new(),
            counter: 0,
            removals: Vec::new(),
            puts: Vec::new(),
            observations: Vec::new(),
            admitted: BTreeSet::new(),
        }
    }

    fn observe(&mut self) -> usize {
        let seen = |(key, object): (&SharedKey, &Object)| {
            let seen = Seen {
                uid: object.uid.to_string(),
                version: object.version.to_string(),
                removals: object.removals,
                hash: Some(hash(object.removals)),
                ..there(key.kind)
            };
            (key.clone(), seen)
        };
        let objects = self.objects.iter().map(seen).collect();
        self.observations.push(SharedObjects { objects, ..SharedObjects::default() });
        self.observations.len() - 1
    }

    /// Decides on one of the observations, records, and sends the actions.
    fn decide(&mut self, observation: usize) {
        let observed = &self.observations[observation];
        let wanted = desired(&self.project_namespace);
        let decision = decision(&self.project_namespace, &wanted, observed);
        self.project_namespace.assignment.namespace_phase = decision.phase;
        self.project_namespace.assignment.status = decision.status;
        self.admit();
        for action in decision.actions {
            match action {
                PlacementAction::Put(key) => {
                    let count = self.project_namespace.assignment.status.removals_of(&key);
                    self.puts.push((key.clone(), self.objects.get(&key).cloned(), count));
                }
                PlacementAction::Remove(removal) | PlacementAction::RemoveIfEmpty(removal) => {
                    self.removals.push(removal);
                }
                PlacementAction::Prove(_) => {}
            }
        }
    }

    /// Lands a write, which names the object that was read before it.
    fn land_put(&mut self, at: usize) {
        let (key, read, removals) = self.puts[at].clone();
        let same = match (&read, self.objects.get(&key)) {
            (None, None) => true,
            (Some(read), Some(found)) => (read.uid, read.version) == (found.uid, found.version),
            _ => false,
        };
        // A write that changes nothing keeps the version.
        if !same || read.as_ref().is_some_and(|read| read.removals == removals) {
            return;
        }
        self.counter += 1;
        let uid = read.map_or(self.counter, |read| read.uid);
        self.objects.insert(key, Object { uid, version: self.counter, removals });
    }

    /// Lands a removal, maybe again.
    fn land_removal(&mut self, at: usize) {
        let Removal { key, uid, version } = self.removals[at].clone();
        let named = |object: &Object| object.uid.to_string() == uid;
        let unchanged = |object: &Object| object.version.to_string() == version;
        if !self.objects.get(&key).is_some_and(|object| named(object) && unchanged(object)) {
            return;
        }
        assert!(!self.is_in_use(&key), "{key:?} goes while it is in use");
        self.objects.remove(&key);
    }

    /// Resources begin where their provider is Ready, and stay.
    fn admit(&mut self) {
        let status = &self.project_namespace.assignment.status;
        let ready = |what: &&str| {
            let used = used(what);
            let status = status.provider(&config(&used));
            self.project_namespace.uses.contains(&used)
                && status.is_some_and(|status| status.phase == ProviderPhase::Ready)
        };
        self.admitted.extend(USES.into_iter().filter(ready));
    }

    fn uses(&mut self, what: &[&str]) {
        self.project_namespace.uses = what.iter().map(|what| used(what)).collect();
        self.project_namespace.resources = i64::try_from(what.len()).unwrap();
        self.admitted.retain(|admitted| what.contains(admitted));
    }

    fn is_in_use(&self, key: &SharedKey) -> bool {
        let mut admitted = self.admitted.iter().map(|what| used(what));
        admitted.any(|used| [config(&used), secret(&used)].contains(key))
    }

    fn advance(&mut self, what: u8, at: usize) {
        match what {
            0..=2 => {
                let observation = self.observe();
                self.decide(observation);
            }
            3 if !self.observations.is_empty() => self.decide(at % self.observations.len()),
            4 if !self.puts.is_empty() => self.land_put(at % self.puts.len()),
            5..=6 if !self.puts.is_empty() => self.land_put(self.puts.len() - 1),
            7 if !self.removals.is_empty() => self.land_removal(at % self.removals.len()),
            8 => self.uses(&[]),
            9 => self.uses(&["aws"]),
            10 => self.uses(&some_uses(at)),
            _ => {}
        }
    }

    /// Lands everything in order, as on a cluster that answers at once.
    fn calm(&mut self) {
        for _ in 0..12 {
            let (puts, removals) = (self.puts.len(), self.removals.len());
            let observation = self.observe();
            self.decide(observation);
            (puts..self.puts.len()).for_each(|at| self.land_put(at));
            (removals..self.removals.len()).for_each(|at| self.land_removal(at));
        }
    }
}

#[test]
fn a_removal_that_lands_after_a_new_use_hits_nothing() {
    let mut late = Late::new();
    late.calm();
    assert_eq!(late.objects.len(), 7, "{:?}", late.objects);
    late.uses(&[]);
    for _ in 0..3 {
        let observation = late.observe();
        late.decide(observation);
    }
    assert!(!late.removals.is_empty(), "it was sent, and its answer is lost");
    late.uses(&["aws", "hetzner"]);
    late.calm();
    let config = key(SharedKind::ProviderConfig, "hetzner", Some("hetzner"));
    assert!(late.is_in_use(&config));
    (0..late.removals.len()).for_each(|at| late.land_removal(at));
    assert!(late.objects.contains_key(&config));
}

#[test]
fn what_is_used_again_is_admitted_after_it_was_written() {
    let mut late = Late::new();
    late.calm();
    late.uses(&[]);
    for _ in 0..3 {
        let observation = late.observe();
        late.decide(observation);
    }
    late.uses(&["aws", "hetzner"]);
    // The write is sent and not answered: an observation shows the old object.
    for _ in 0..3 {
        let observation = late.observe();
        late.decide(observation);
        assert!(!late.is_in_use(&key(SharedKind::ProviderConfig, "hetzner", Some("hetzner"))));
    }
}

/// The project leaves while a create of its namespace is on its way.
#[test]
fn a_namespace_is_gone_when_no_create_of_it_can_land() {
    let namespace = key(SharedKind::Namespace, NAMESPACE, None);
    for answered in [true, false] {
        let mut world = World::new(&[]);
        let sent = world.pass();
        assert!(sent.contains(&PlacementAction::Put(namespace.clone())), "{sent:?}");
        let until = at(1_000).plus(CREATE_LANDS_WITHIN * 2);
        let recorded = |world: &World| world.project_namespace.assignment.status.create_lands_until;
        assert_eq!(recorded(&world), Some(until), "before it is sent");
        if !answered {
            world.observed = SharedObjects::default();
            // A second one is answered; the first may land all the same.
            world.project_namespace.now = at(1_010);
            world.pass();
        }
        world.pass();
        let pending = (!answered).then_some(until);
        assert_eq!(recorded(&world), pending);

        world.project_namespace.assignment.withdrawn_at = Some(at(1_020));
        world.converge();
        if answered {
            assert_eq!(world.phase(), NamespacePhase::Deleted);
            continue;
        }
        assert_eq!(world.phase(), NamespacePhase::Terminating);
        let problems = &world.project_namespace.assignment.status.problems;
        assert!(problems[0].contains("may be carried out until"), "{problems:?}");
        // It lands, and is removed like any other.
        world.observed.absent.clear();
        world.observed.objects.insert(namespace.clone(), there(SharedKind::Namespace));
        world.converge();
        assert!(!world.observed.objects.contains_key(&namespace));
        assert_eq!(world.phase(), NamespacePhase::Terminating);
        world.project_namespace.now = at(1_181);
        world.converge();
        assert_eq!(world.phase(), NamespacePhase::Deleted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Declared and deleted, decided on observations of any age by any replica,
    /// written and removed at any time, in any order and more than once: no
    /// object in use goes, and afterwards everything converges.
    #[test]
    fn no_late_removal_hits_an_object_in_use(
        steps in proptest::collection::vec((0u8..11, 0usize..64), 0..120),
        again in any::<bool>(),
    ) {
        let mut late = Late::new();
        late.calm();
        for (what, at) in steps {
            late.advance(what, at);
        }
        late.uses(if again { &USES } else { &[] });
        late.calm();
        for what in USES {
            let phase = late.project_namespace.assignment.status.provider(&config(&used(what)));
            let phase = phase.map(|status| status.phase);
            prop_assert_eq!(phase, again.then_some(ProviderPhase::Ready));
        }
        (0..late.removals.len()).for_each(|at| late.land_removal(at));
    }
}
