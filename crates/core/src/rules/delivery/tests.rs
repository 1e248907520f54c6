//! Blueprints delivered, by hand and by chance.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::blueprint::{CompositeScope, CompositeType};
use crate::delivery::DeliveredKind;
use crate::fixtures::{at, mk_actor};
use crate::ids::{ClusterId, InstallationId};

fn key(kind: DeliveredKind) -> DeliveredKey {
    DeliveredKey { kind, name: kind.as_str().to_lowercase() }
}

fn versions(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn delivered() -> Delivered {
    Delivered {
        installation: InstallationId::new(Uuid::from_u128(1)),
        definition: key(DeliveredKind::Definition),
        role: key(DeliveredKind::Role),
        composition: key(DeliveredKind::Composition),
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
        composite_type: CompositeType {
            group: "nodes.example.org".to_owned(),
            version: "v2".to_owned(),
            kind: "XServer".to_owned(),
            plural: "xservers".to_owned(),
            scope: CompositeScope::Namespaced,
        },
        kept: versions(&["v2"]),
        delivery: None,
    }
}

fn seen() -> DeliveredSeen {
    DeliveredSeen {
        owner: Owner::Ours(Some("server".to_owned())),
        version: Some("v2".to_owned()),
        fits: true,
        terminating: false,
        established: Ok(()),
        serves: versions(&["v2"]),
    }
}

fn sight(definition: Look, role: Look, composition: Look) -> DeliverySight {
    let delivered = delivered();
    let objects = [
        (delivered.definition, definition),
        (delivered.role, role),
        (delivered.composition, composition),
    ];
    DeliverySight { objects: objects.into_iter().collect(), lacking: None }
}

fn whole() -> DeliverySight {
    sight(Look::Seen(seen()), Look::Seen(seen()), Look::Seen(seen()))
}

fn puts(plan: &Plan) -> Vec<DeliveredKind> {
    let kinds = plan.steps.iter().filter_map(|step| match step {
        Step::Put(key) => Some(key.kind),
        Step::AskRights => None,
    });
    kinds.collect()
}

/// What an API server and Crossplane make of a plan.
fn act(plan: &Plan, sight: &mut DeliverySight) {
    for step in &plan.steps {
        match step {
            Step::AskRights => sight.lacking = Some(Vec::new()),
            Step::Put(key) => {
                sight.objects.insert(key.clone(), Look::Seen(seen()));
            }
        }
    }
}

#[test]
fn the_composition_waits_until_its_kind_is_established() {
    let (demand, delivered) = (demand(), delivered());
    let mut sight = sight(Look::Absent, Look::Absent, Look::Absent);
    let first = plan(&demand, &delivered, &sight);
    assert_eq!(puts(&first), [DeliveredKind::Definition, DeliveredKind::Role]);
    assert_eq!((first.phase, first.found.as_deref()), (DeliveryPhase::Applying, None));

    let waiting = DeliveredSeen { established: Err("not yet".to_owned()), ..seen() };
    act(&first, &mut sight);
    sight.objects.insert(delivered.definition.clone(), Look::Seen(waiting));
    let second = plan(&demand, &delivered, &sight);
    assert_eq!((puts(&second), second.phase), (vec![], DeliveryPhase::Applying));
    assert!(second.problem.unwrap().ends_with("is not Established: not yet"));

    sight.objects.insert(delivered.definition.clone(), Look::Seen(seen()));
    let third = plan(&demand, &delivered, &sight);
    assert_eq!(puts(&third), [DeliveredKind::Composition]);
    act(&third, &mut sight);
    let last = plan(&demand, &delivered, &sight);
    assert_eq!((last.phase, last.problem), (DeliveryPhase::Established, None));
    assert_eq!((last.steps, last.found.as_deref()), (vec![], Some("v2")));
}

#[test]
fn a_version_that_is_needed_goes_on_being_served() {
    let delivered = delivered();
    let older = DeliveredSeen { fits: false, serves: versions(&["v1"]), ..seen() };
    let older = sight(Look::Seen(older), Look::Seen(seen()), Look::Seen(seen()));
    assert_eq!(puts(&plan(&demand(), &delivered, &older)), [DeliveredKind::Definition]);
    let needed = Demand { kept: versions(&["v1", "v2"]), ..demand() };
    let held = plan(&needed, &delivered, &older);
    assert_eq!((held.phase, held.steps), (DeliveryPhase::Degraded, vec![]));
    assert!(held.problem.unwrap().contains("no longer serves v1,"));
    let both = Delivered { serves: versions(&["v1", "v2"]), ..delivered };
    assert_eq!(puts(&plan(&needed, &both, &older)), [DeliveredKind::Definition]);
}

#[test]
fn what_is_not_of_this_blueprint_is_left_alone_and_named() {
    for (owner, named) in [
        (Owner::Foreign("somebody else".to_owned()), "kubectl label compositeresourcedefinition"),
        (Owner::Ours(Some("other".to_owned())), "blueprint `other`"),
    ] {
        let theirs = DeliveredSeen { owner, fits: false, ..seen() };
        let sight = sight(Look::Seen(theirs), Look::Absent, Look::Absent);
        let held = plan(&demand(), &delivered(), &sight);
        assert_eq!((held.phase, held.steps), (DeliveryPhase::Degraded, vec![]));
        let problem = held.problem.unwrap();
        assert!(problem.contains(named) && problem.contains("without delivery"), "{problem}");
    }
    let handed_over = DeliveredSeen { owner: Owner::Ours(None), fits: false, ..seen() };
    let sight = sight(Look::Seen(handed_over), Look::Absent, Look::Absent);
    assert_eq!(puts(&plan(&demand(), &delivered(), &sight))[0], DeliveredKind::Definition);
}

#[test]
fn a_role_that_may_not_be_written_holds_nothing_and_is_told() {
    let (demand, delivered) = (demand(), delivered());
    let mut sight = whole();
    sight.objects.insert(delivered.role.clone(), Look::Refused("403".to_owned()));
    let asks = plan(&demand, &delivered, &sight);
    assert_eq!((asks.steps, asks.phase), (vec![Step::AskRights], DeliveryPhase::Established));
    sight.lacking = Some(vec!["create".to_owned()]);
    let lacking = plan(&demand, &delivered, &sight);
    assert_eq!((&*lacking.steps, lacking.phase), (&[][..], DeliveryPhase::Established));
    let known = recorded(&demand, &lacking);
    let problem = lacking.problem.unwrap();
    let mut anew = sight.clone();
    anew.objects.insert(delivered.role.clone(), Look::Absent);
    anew.lacking = None;
    let again = plan(&known, &delivered, &anew).trying(&known);
    assert_eq!((again.problem.as_ref(), again.steps.len()), (Some(&problem), 1), "not gone yet");
    assert!(problem.contains("slipway blueprint rbac server | kubectl apply -f -"), "{problem}");
    sight.lacking = Some(Vec::new());
    assert_eq!(plan(&demand, &delivered, &sight).problem, None);
    // Known to be in order, it is not asked again and again.
    sight.lacking = None;
    let known = recorded(&demand, &plan(&demand, &delivered, &whole()));
    assert_eq!(plan(&known, &delivered, &sight).steps, []);
}

fn recorded(demand: &Demand, plan: &Plan) -> Demand {
    super::recorded(demand, &record(demand, plan, &mk_actor()))
}

#[test]
fn a_phase_is_audited_when_it_changes_and_nothing_is_written_twice() {
    let (demand, delivered) = (demand(), delivered());
    let absent = sight(Look::Absent, Look::Absent, Look::Absent);
    let applying = plan(&demand, &delivered, &absent);
    let commit = record(&demand, &applying, &mk_actor());
    assert_eq!(commit.audit[0].verb, "blueprint.delivery_phase");
    let known = recorded(&demand, &applying);
    assert!(record(&known, &applying, &mk_actor()).is_empty());
    let later = Demand { now: at(2_000), ..known };
    let told = record(&later, &applying.clone().failed("refused"), &mk_actor());
    assert_eq!((told.writes.len(), told.audit.len()), (1, 1));
    let refused = recorded(&later, &applying.clone().failed("refused"));
    let again = applying.clone().trying(&refused);
    assert!(record(&refused, &again, &mk_actor()).is_empty(), "a try is not audited");
    let frozen = applying.withheld(&later, "frozen");
    assert_eq!(frozen.phase, DeliveryPhase::Applying);
    let commit = record(&later, &frozen, &mk_actor());
    assert_eq!((commit.writes.len(), commit.audit.len()), (1, 0));
    let waiting = recorded(&later, &frozen).delivery.unwrap();
    assert_eq!(waiting.since, at(1_000), "it is in this phase since then");
}

fn any_look() -> impl Strategy<Value = Look> {
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
            Look::Seen(DeliveredSeen { owner, fits, terminating, established, serves, ..seen() })
        },
    );
    prop_oneof![
        2 => Just(Look::Absent),
        6 => there,
        1 => Just(Look::Refused("no right".to_owned())),
        1 => Just(Look::Unreadable("no answer".to_owned())),
    ]
}

proptest! {
    /// Whatever is seen: only what is absent or ours is put, the Composition
    /// after its kind, nothing that is needed stops being served, and Established
    /// is said of what is.
    #[test]
    fn a_delivery_touches_only_what_is_its_own_and_in_order(
        definition in any_look(),
        role in any_look(),
        composition in any_look(),
        kept in proptest::sample::subsequence(vec!["v1", "v2", "v3"], 0..=3),
        lacking in proptest::option::of(Just(vec!["get".to_owned()])),
    ) {
        let delivered = delivered();
        let demand = Demand { kept: versions(&kept), ..demand() };
        let mut sight = sight(definition.clone(), role, composition.clone());
        sight.lacking = lacking;
        let planned = plan(&demand, &delivered, &sight);
        let own = |seen: &DeliveredSeen| {
            matches!(&seen.owner, Owner::Ours(slug) if slug.as_deref().is_none_or(|slug| slug == "server"))
        };
        let stands = matches!(
            &definition,
            Look::Seen(seen) if own(seen) && seen.fits && !seen.terminating && seen.established.is_ok()
        );
        for step in &planned.steps {
            let Step::Put(key) = step else { continue };
            match &sight.objects[key] {
                Look::Absent => {}
                Look::Seen(seen) => {
                    prop_assert!(own(seen) && !seen.terminating && !seen.fits, "{step:?}");
                }
                other => prop_assert!(false, "{step:?} on {other:?}"),
            }
            if key.kind == DeliveredKind::Composition {
                prop_assert!(stands);
            }
            if key.kind == DeliveredKind::Definition
                && let Look::Seen(seen) = &definition
            {
                let mut lost = seen.serves.difference(&delivered.serves);
                prop_assert!(lost.all(|version| !demand.kept.contains(version)));
            }
        }
        let complete = stands && matches!(
            &composition,
            Look::Seen(seen) if own(seen) && seen.fits && !seen.terminating
        );
        prop_assert_eq!(planned.phase == DeliveryPhase::Established, complete);
        if planned.phase == DeliveryPhase::Degraded {
            prop_assert!(planned.problem.is_some() && planned.steps.is_empty());
        }
        // What is done leads on: three rounds at most, or somebody is in the way.
        let mut round = planned;
        for _ in 0..3 {
            act(&round, &mut sight);
            round = plan(&demand, &delivered, &sight);
        }
        prop_assert!(round.steps.is_empty(), "{round:?}");
    }
}
