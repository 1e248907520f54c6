//! Installation of definitions, in hand-written and generated cases.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::catalog::blueprint_version::{CompositeScope, CompositeType};
use crate::fixtures::{at, mk_actor};
use crate::ids::BlueprintId;
use crate::ids::{ClusterId, InstallationId};
use crate::placement::definitions::DefinitionKind;

fn key(kind: DefinitionKind) -> DefinitionKey {
    DefinitionKey { kind, name: kind.as_str().to_lowercase() }
}

/// The Composition of the version before.
fn other() -> DefinitionKey {
    DefinitionKey { kind: DefinitionKind::Composition, name: "composition-of-v1".to_owned() }
}

fn versions(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn definitions() -> DefinitionSet {
    DefinitionSet {
        installation: InstallationId::new(Uuid::from_u128(1)),
        definition: key(DefinitionKind::Xrd),
        role: key(DefinitionKind::Role),
        composition: key(DefinitionKind::Composition),
        others: vec![other()],
        serves: versions(&["v2"]),
    }
}

fn demand() -> Demand {
    Demand {
        now: at(1_000),
        cluster_id: ClusterId::new(Uuid::from_u128(8)),
        blueprint_id: BlueprintId::new(Uuid::from_u128(9)),
        slug: "server".to_owned(),
        version: "v2".to_owned(),
        xrd: String::new(),
        composition: String::new(),
        composition_name: Some("composition".to_owned()),
        others: Vec::new(),
        composite_type: CompositeType {
            group: "nodes.example.org".to_owned(),
            version: "v2".to_owned(),
            kind: "XServer".to_owned(),
            plural: "xservers".to_owned(),
            scope: CompositeScope::Namespaced,
        },
        kept: versions(&["v2"]),
        definitions: None,
    }
}

fn seen() -> ObservedDefinition {
    ObservedDefinition {
        owner: Owner::Ours(Some("server".to_owned())),
        version: Some("v2".to_owned()),
        fits: true,
        terminating: false,
        established: Ok(()),
        serves: versions(&["v2"]),
    }
}

fn older() -> ObservedDefinition {
    ObservedDefinition { version: Some("v1".to_owned()), ..seen() }
}

fn observed(
    definition: DefinitionState,
    role: DefinitionState,
    composition: DefinitionState,
) -> ObservedDefinitions {
    let definitions = definitions();
    let older = match composition {
        DefinitionState::Absent => DefinitionState::Absent,
        _ => DefinitionState::Seen(older()),
    };
    let objects = [
        (definitions.definition, definition),
        (definitions.role, role),
        (definitions.composition, composition),
        (other(), older),
    ];
    ObservedDefinitions { objects: objects.into_iter().collect(), lacking: None }
}

fn complete() -> ObservedDefinitions {
    observed(
        DefinitionState::Seen(seen()),
        DefinitionState::Seen(seen()),
        DefinitionState::Seen(seen()),
    )
}

fn puts(decision: &DefinitionsDecision) -> Vec<DefinitionKind> {
    let kinds = decision.actions.iter().filter_map(|action| match action {
        DefinitionsAction::Put(key) => Some(key.kind),
        DefinitionsAction::AskRights => None,
    });
    kinds.collect()
}

/// Simulates how an API server and Crossplane carry out the actions.
fn act(decision: &DefinitionsDecision, observed: &mut ObservedDefinitions) {
    for action in &decision.actions {
        match action {
            DefinitionsAction::AskRights => observed.lacking = Some(Vec::new()),
            DefinitionsAction::Put(key) => {
                let seen = if *key == other() { older() } else { seen() };
                observed.objects.insert(key.clone(), DefinitionState::Seen(seen));
            }
        }
    }
}

#[test]
fn the_composition_waits_until_its_kind_is_established() {
    let (demand, definitions) = (demand(), definitions());
    let mut observed =
        observed(DefinitionState::Absent, DefinitionState::Absent, DefinitionState::Absent);
    let first = decision(&demand, &definitions, &observed);
    assert_eq!(puts(&first), [DefinitionKind::Xrd, DefinitionKind::Role]);
    assert_eq!((first.phase, first.found.as_deref()), (DefinitionPhase::Applying, None));

    let waiting = ObservedDefinition { established: Err("not yet".to_owned()), ..seen() };
    act(&first, &mut observed);
    observed.objects.insert(definitions.definition.clone(), DefinitionState::Seen(waiting));
    let second = decision(&demand, &definitions, &observed);
    assert_eq!((puts(&second), second.phase), (vec![], DefinitionPhase::Applying));
    assert!(second.problem.unwrap().ends_with("is not Established: not yet"));

    observed.objects.insert(definitions.definition.clone(), DefinitionState::Seen(seen()));
    let third = decision(&demand, &definitions, &observed);
    assert_eq!(puts(&third), [DefinitionKind::Composition; 2]);
    act(&third, &mut observed);
    let last = decision(&demand, &definitions, &observed);
    assert_eq!((last.phase, last.problem), (DefinitionPhase::Established, None));
    assert_eq!((last.actions, last.found.as_deref()), (vec![], Some("v2")));
}

#[test]
fn a_version_that_is_needed_goes_on_being_served() {
    let definitions = definitions();
    let older = ObservedDefinition { fits: false, serves: versions(&["v1"]), ..seen() };
    let older = observed(
        DefinitionState::Seen(older),
        DefinitionState::Seen(seen()),
        DefinitionState::Seen(seen()),
    );
    assert_eq!(puts(&decision(&demand(), &definitions, &older)), [DefinitionKind::Xrd]);
    let needed = Demand { kept: versions(&["v1", "v2"]), ..demand() };
    let held = decision(&needed, &definitions, &older);
    assert_eq!((held.phase, held.actions), (DefinitionPhase::Degraded, vec![]));
    assert!(held.problem.unwrap().contains("no longer serves v1,"));
    let both = DefinitionSet { serves: versions(&["v1", "v2"]), ..definitions };
    assert_eq!(puts(&decision(&needed, &both, &older)), [DefinitionKind::Xrd]);
}

/// A version is found once the Compositions of all that are needed are there, and the one
/// before it as long as its XRD is.
#[test]
fn an_older_version_keeps_its_composition_beside_the_newer_one() {
    let (demand, definitions) = (demand(), definitions());
    let older_xrd = ObservedDefinition { fits: false, ..older() };
    let mut observed = observed(
        DefinitionState::Seen(older_xrd),
        DefinitionState::Seen(seen()),
        DefinitionState::Absent,
    );
    let first = decision(&demand, &definitions, &observed);
    assert_eq!((puts(&first), first.found.as_deref()), (vec![DefinitionKind::Xrd], Some("v1")));
    let demand = recorded(&demand, &first);
    let mut unread = observed.clone();
    let failed = DefinitionState::Unreadable("no answer".to_owned());
    unread.objects.insert(definitions.definition.clone(), failed);
    let unread = decision(&demand, &definitions, &unread);
    assert_eq!(unread.found.as_deref(), Some("v1"), "nothing is concluded");
    act(&first, &mut observed);
    observed.objects.insert(definitions.composition.clone(), DefinitionState::Seen(seen()));
    let second = decision(&demand, &definitions, &observed);
    assert_eq!(second.actions, [DefinitionsAction::Put(other())]);
    assert_eq!((second.phase, second.found.as_deref()), (DefinitionPhase::Applying, None));
    act(&second, &mut observed);
    let last = decision(&demand, &definitions, &observed);
    assert_eq!((last.phase, last.found.as_deref()), (DefinitionPhase::Established, Some("v2")));

    // One that is in the way keeps no other from being put.
    let theirs = ObservedDefinition { owner: Owner::Foreign("x".to_owned()), ..older() };
    observed.objects.insert(other(), DefinitionState::Seen(theirs));
    observed.objects.insert(definitions.composition.clone(), DefinitionState::Absent);
    let puts_own = decision(&demand, &definitions, &observed);
    assert_eq!(puts(&puts_own), [DefinitionKind::Composition]);
    act(&puts_own, &mut observed);
    let held = decision(&demand, &definitions, &observed);
    assert_eq!((held.phase, held.found), (DefinitionPhase::Degraded, None));
    assert!(held.problem.unwrap().contains("composition-of-v1"));
}

#[test]
fn what_is_not_of_this_blueprint_is_left_alone_and_named() {
    for (owner, named) in [
        (Owner::Foreign("somebody else".to_owned()), "kubectl label compositeresourcedefinition"),
        (Owner::Ours(Some("other".to_owned())), "blueprint `other`"),
    ] {
        let theirs = ObservedDefinition { owner, fits: false, ..seen() };
        let observed = observed(
            DefinitionState::Seen(theirs),
            DefinitionState::Absent,
            DefinitionState::Absent,
        );
        let held = decision(&demand(), &definitions(), &observed);
        assert_eq!((held.phase, held.actions), (DefinitionPhase::Degraded, vec![]));
        let problem = held.problem.unwrap();
        assert!(
            problem.contains(named) && problem.contains("without `install_definitions`"),
            "{problem}"
        );
    }
    let handed_over = ObservedDefinition { owner: Owner::Ours(None), fits: false, ..seen() };
    let observed = observed(
        DefinitionState::Seen(handed_over),
        DefinitionState::Absent,
        DefinitionState::Absent,
    );
    assert_eq!(puts(&decision(&demand(), &definitions(), &observed))[0], DefinitionKind::Xrd);
}

#[test]
fn a_role_that_may_not_be_written_holds_nothing_and_is_told() {
    let (demand, definitions) = (demand(), definitions());
    let mut observed = complete();
    observed.objects.insert(definitions.role.clone(), DefinitionState::Refused("403".to_owned()));
    let asks = decision(&demand, &definitions, &observed);
    assert_eq!(
        (asks.actions, asks.phase),
        (vec![DefinitionsAction::AskRights], DefinitionPhase::Established)
    );
    observed.lacking = Some(vec!["create".to_owned()]);
    let lacking = decision(&demand, &definitions, &observed);
    assert_eq!((&*lacking.actions, lacking.phase), (&[][..], DefinitionPhase::Established));
    let known = recorded(&demand, &lacking);
    let problem = lacking.problem.unwrap();
    let mut anew = observed.clone();
    anew.objects.insert(definitions.role.clone(), DefinitionState::Absent);
    anew.lacking = None;
    let again = decision(&known, &definitions, &anew).trying(&known);
    assert_eq!((again.problem.as_ref(), again.actions.len()), (Some(&problem), 1), "not gone yet");
    assert!(problem.contains("slipway blueprint rbac server | kubectl apply -f -"), "{problem}");
    observed.lacking = Some(Vec::new());
    assert_eq!(decision(&demand, &definitions, &observed).problem, None);
    // Once they are recorded as complete, the rights are not asked for again.
    observed.lacking = None;
    let known = recorded(&demand, &decision(&demand, &definitions, &complete()));
    assert_eq!(decision(&known, &definitions, &observed).actions, []);
}

fn recorded(demand: &Demand, decision: &DefinitionsDecision) -> Demand {
    super::recorded(demand, &record(demand, decision, &mk_actor()))
}

#[test]
fn a_phase_is_audited_when_it_changes_and_nothing_is_written_twice() {
    let (demand, definitions) = (demand(), definitions());
    let absent =
        observed(DefinitionState::Absent, DefinitionState::Absent, DefinitionState::Absent);
    let applying = decision(&demand, &definitions, &absent);
    let commit = record(&demand, &applying, &mk_actor());
    assert_eq!(commit.audit[0].verb, "blueprint.definitions_phase");
    let known = recorded(&demand, &applying);
    assert!(record(&known, &applying, &mk_actor()).is_empty());
    let later = Demand { now: at(2_000), ..known };
    let told = record(&later, &applying.clone().failed("refused"), &mk_actor());
    assert_eq!((told.writes.len(), told.audit.len()), (1, 1));
    let refused = recorded(&later, &applying.clone().failed("refused"));
    let again = applying.clone().trying(&refused);
    assert!(record(&refused, &again, &mk_actor()).is_empty(), "a try is not audited");
    let frozen = applying.withheld(&later, "frozen");
    assert_eq!(frozen.phase, DefinitionPhase::Applying);
    let commit = record(&later, &frozen, &mk_actor());
    assert_eq!((commit.writes.len(), commit.audit.len()), (1, 0));
    let waiting = recorded(&later, &frozen).definitions.unwrap();
    assert_eq!(waiting.since, at(1_000), "it is in this phase since then");
}

fn any_state() -> impl Strategy<Value = DefinitionState> {
    let owner = prop_oneof![
        4 => Just(Owner::Ours(Some("server".to_owned()))),
        1 => Just(Owner::Ours(None)),
        1 => Just(Owner::Ours(Some("other".to_owned()))),
        1 => Just(Owner::Foreign("somebody".to_owned())),
    ];
    let serves = proptest::sample::subsequence(vec!["v1", "v2", "v3"], 0..=3);
    let there = (owner, any::<bool>(), any::<bool>(), any::<bool>(), serves).prop_map(
        |(owner, fits, terminating, established, serves)| {
            let established = if established { Ok(()) } else { Err("no".to_owned()) };
            let serves = versions(&serves);
            DefinitionState::Seen(ObservedDefinition {
                owner,
                fits,
                terminating,
                established,
                serves,
                ..seen()
            })
        },
    );
    prop_oneof![
        2 => Just(DefinitionState::Absent),
        6 => there,
        1 => Just(DefinitionState::Refused("no right".to_owned())),
        1 => Just(DefinitionState::Unreadable("no answer".to_owned())),
    ]
}

proptest! {
    /// Whatever is observed: only absent objects and our own are put, the
    /// Composition comes after its kind, no version in use stops being served,
    /// and the phase is Established exactly if everything is.
    #[test]
    fn an_installation_of_definitions_touches_only_what_is_its_own_and_in_order(
        definition in any_state(),
        role in any_state(),
        composition in any_state(),
        older in any_state(),
        kept in proptest::sample::subsequence(vec!["v1", "v2", "v3"], 0..=3),
        lacking in proptest::option::of(Just(vec!["get".to_owned()])),
    ) {
        let definitions = definitions();
        let demand = Demand { kept: versions(&kept), ..demand() };
        let mut observed = observed(definition.clone(), role, composition.clone());
        observed.lacking = lacking;
        observed.objects.insert(other(), older.clone());
        let planned = decision(&demand, &definitions, &observed);
        let own = |seen: &ObservedDefinition| {
            matches!(&seen.owner, Owner::Ours(slug) if slug.as_deref().is_none_or(|slug| slug == "server"))
        };
        let stands = matches!(
            &definition,
            DefinitionState::Seen(seen) if own(seen) && seen.fits && !seen.terminating && seen.established.is_ok()
        );
        for action in &planned.actions {
            let DefinitionsAction::Put(key) = action else { continue };
            match &observed.objects[key] {
                DefinitionState::Absent => {}
                DefinitionState::Seen(seen) => {
                    prop_assert!(own(seen) && !seen.terminating && !seen.fits, "{action:?}");
                }
                other => prop_assert!(false, "{action:?} on {other:?}"),
            }
            if key.kind == DefinitionKind::Composition {
                prop_assert!(stands);
            }
            if key.kind == DefinitionKind::Xrd
                && let DefinitionState::Seen(seen) = &definition
            {
                let mut lost = seen.serves.difference(&definitions.serves);
                prop_assert!(lost.all(|version| !demand.kept.contains(version)));
            }
        }
        let complete = stands && [&composition, &older].into_iter().all(|state| matches!(
            state,
            DefinitionState::Seen(seen) if own(seen) && seen.fits && !seen.terminating
        ));
        prop_assert_eq!(planned.phase == DefinitionPhase::Established, complete);
        if planned.phase == DefinitionPhase::Degraded {
            prop_assert!(planned.problem.is_some() && planned.actions.is_empty());
        }
        // The actions make progress: at most three rounds until none is left.
        let mut round = planned;
        for _ in 0..3 {
            act(&round, &mut observed);
            round = decision(&demand, &definitions, &observed);
        }
        prop_assert!(round.actions.is_empty(), "{round:?}");
    }
}
