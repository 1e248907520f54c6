//! Offers, as a table and against a model of agents that apply what they are offered.

use proptest::prelude::*;

use super::*;
use crate::fixtures::fleet::{mk_agent, mk_stack};
use crate::fixtures::{at, mk_frozen, uuid};
use crate::operations::control::Observing;

fn object(number: u128, is_marker: bool, is_for_agent: bool) -> ObjectFact {
    ObjectFact {
        id: DeploymentObjectId::new(uuid(number)),
        is_marker,
        keeps: false,
        is_for_agent,
        is_erased: false,
        is_withdrawn: false,
    }
}

const ALL_LEGS: Legs =
    Legs { is_registered: true, has_target: true, shares_label: false, shares_annotation: false };

fn candidate() -> Candidate {
    Candidate {
        stack_id: mk_stack().id,
        is_live: true,
        legs: ALL_LEGS,
        last_sequence: 7,
        newest: Some(object(2, false, false)),
        rendered: Rendered::NotNeeded,
        held: Some(object(1, false, false)),
        in_rollout: None,
    }
}

fn snapshot(candidates: Vec<Candidate>) -> OfferSnapshot {
    let agent = Some(mk_agent());
    OfferSnapshot { now: at(1_000), mode: Mode::Acting, agent, tags: 0, candidates }
}

#[test]
fn a_registration_is_consent_and_one_other_leg_is_enough() {
    for bits in 0..16_u8 {
        let legs = Legs {
            is_registered: bits & 1 > 0,
            has_target: bits & 2 > 0,
            shares_label: bits & 4 > 0,
            shares_annotation: bits & 8 > 0,
        };
        assert_eq!(legs.is_associated(), bits & 1 > 0 && bits > 1, "{legs:?}");
    }
}

#[test]
fn a_stack_is_offered_until_it_is_proven_removed() {
    let (content, marker) = (object(2, false, false), object(3, true, false));
    let own = object(4, true, true);
    let there = candidate();
    let untargeted = Candidate { legs: Legs { has_target: false, ..ALL_LEGS }, ..there };
    let deleted = Candidate { is_live: false, newest: Some(marker), ..there };
    let table = [
        ("newer content", there, Offer::Object(content.id)),
        ("never had it", Candidate { held: None, ..there }, Offer::Object(content.id)),
        ("deleted", deleted, Offer::Object(marker.id)),
        ("deleted, never had it", Candidate { held: None, ..deleted }, Offer::Nothing),
        (
            "deleted and restored",
            Candidate { held: Some(marker), ..there },
            Offer::Object(content.id),
        ),
        (
            "a submitted marker",
            Candidate { newest: Some(marker), ..there },
            Offer::Object(marker.id),
        ),
        (
            "the same, never had it",
            Candidate { newest: Some(marker), held: None, ..there },
            Offer::Nothing,
        ),
        ("untargeted", untargeted, Offer::Release),
        ("untargeted and told", Candidate { held: Some(own), ..untargeted }, Offer::Object(own.id)),
        ("untargeted, never had it", Candidate { held: None, ..untargeted }, Offer::Nothing),
        ("targeted again", Candidate { held: Some(own), ..there }, Offer::Object(content.id)),
        (
            "untargeted, then deleted",
            Candidate { held: Some(own), ..deleted },
            Offer::Object(marker.id),
        ),
        ("no object at all", Candidate { newest: None, held: None, ..there }, Offer::Nothing),
    ];
    for (what, candidate, expected) in table {
        assert_eq!(offer(&candidate, Terms::default()), expected, "{what}");
    }
}

const FROZEN: Terms = Terms { is_frozen: true, can_keep: false };

/// An agent that cannot let go keeps what it has: it would take the marker for a removal.
#[test]
fn only_an_agent_that_can_let_go_is_told_to() {
    let keeping = ObjectFact { keeps: true, ..object(3, true, false) };
    let there = Candidate { is_live: false, newest: Some(keeping), ..candidate() };
    let held = object(1, false, false);
    assert_eq!(offer(&there, Terms::default()), Offer::Object(held.id));
    let able = Terms { can_keep: true, ..Terms::default() };
    assert_eq!(offer(&there, able), Offer::Object(keeping.id));
    assert_eq!(offer(&Candidate { held: None, ..there }, Terms::default()), Offer::Nothing);
    let own = object(4, true, true);
    let told = Candidate { held: Some(own), ..there };
    assert_eq!(offer(&told, Terms::default()), Offer::Object(own.id), "it was told to remove it");
}

/// What it has, or else what all had; never the newest while it is outside.
#[test]
fn outside_the_wave_an_agent_keeps_what_it_has() {
    let settled = object(5, false, false);
    let in_rollout = Some(InRollout { may_take: false, settled: Some(settled.id) });
    let there = Candidate { in_rollout, ..candidate() };
    let held = object(1, false, false);
    let offered = |one: Candidate| offer(&one, Terms::default());
    assert_eq!(offered(there), Offer::Object(held.id));
    assert_eq!(offered(Candidate { held: None, ..there }), Offer::Object(settled.id));
    let withdrawn = ObjectFact { is_withdrawn: true, ..held };
    assert_eq!(offered(Candidate { held: Some(withdrawn), ..there }), Offer::Object(settled.id));
    let marker_fact = object(3, true, false);
    let marker = Some(marker_fact);
    assert_eq!(offered(Candidate { newest: marker, ..there }), Offer::Object(held.id));
    let first =
        Candidate { in_rollout: Some(InRollout { may_take: false, settled: None }), ..there };
    assert_eq!(offered(Candidate { held: None, ..first }), Offer::Nothing, "nobody had one");
    assert_eq!(offered(Candidate { held: marker, ..first }), Offer::Object(marker_fact.id));
    let newest = object(2, false, false);
    assert_eq!(offered(Candidate { held: Some(withdrawn), ..first }), Offer::Object(newest.id));
    let inside = Some(InRollout { may_take: true, settled: Some(settled.id) });
    assert_eq!(offered(Candidate { in_rollout: inside, ..there }), Offer::Object(newest.id));
    let gone = Candidate { is_live: false, newest: marker, ..there };
    assert_eq!(offered(gone), Offer::Object(marker_fact.id), "a deletion is for all");
    let untargeted = Candidate { legs: Legs { has_target: false, ..ALL_LEGS }, ..there };
    assert_eq!(offered(untargeted), Offer::Release);
}

/// To an agent an absent stack means "remove it", so there is no offer at all.
#[test]
fn erased_content_is_offered_to_nobody() {
    let erased = ObjectFact { is_erased: true, ..object(1, false, false) };
    let marker = object(3, true, false);
    let there =
        Candidate { is_live: false, newest: Some(marker), held: Some(erased), ..candidate() };
    assert_eq!(decide(&snapshot(vec![there])).unwrap().0, [marker.id]);
    let frozen = OfferSnapshot { mode: mk_frozen(), ..snapshot(vec![there]) };
    assert_eq!(unchanged(&frozen).unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(decide(&frozen).unwrap_err().kind, ErrorKind::Unavailable);
}

#[test]
fn while_frozen_an_agent_is_offered_what_it_has() {
    let there = candidate();
    let deleted = Candidate { is_live: false, newest: Some(object(3, true, false)), ..there };
    for candidate in [there, deleted] {
        assert_eq!(offer(&candidate, FROZEN), Offer::Object(object(1, false, false).id));
    }
    assert_eq!(offer(&Candidate { held: None, ..there }, FROZEN), Offer::Nothing, "nothing new");
    let frozen = OfferSnapshot { mode: mk_frozen(), ..snapshot(vec![there, deleted]) };
    assert_eq!(unchanged(&frozen).unwrap().unwrap().len(), 2, "so nothing is written");
}

/// Nobody is offered the text of a template, and a rendering that fails removes nothing.
#[test]
fn of_content_that_differs_an_agent_is_offered_its_own() {
    let (held, own) = (object(1, false, true), object(5, false, true));
    let there = Candidate { rendered: Rendered::As(own.id), held: Some(held), ..candidate() };
    assert_eq!(offer(&there, Terms::default()), Offer::Object(own.id));
    for rendered in [Rendered::Missing, Rendered::Failed] {
        let there = Candidate { rendered, ..there };
        assert_eq!(offer(&there, Terms::default()), Offer::Object(held.id));
        let first = Candidate { held: None, ..there };
        assert_eq!(offer(&first, Terms::default()), Offer::Nothing);
        let newest = there.newest.map(|newest| newest.id);
        let wanted: Vec<_> = newest.into_iter().filter(|_| rendered == Rendered::Missing).collect();
        assert_eq!(snapshot(vec![there]).missing(), wanted);
        assert_eq!(snapshot(vec![Candidate { is_live: false, ..there }]).missing(), []);
        let outside = Some(InRollout { may_take: false, settled: None });
        assert_eq!(snapshot(vec![Candidate { in_rollout: outside, ..there }]).missing(), []);
        let observing =
            Observing { since: at(900), by: "replica:a".to_owned(), reason: "restored".to_owned() };
        for mode in [mk_frozen(), Mode::Observing(observing)] {
            let there = OfferSnapshot { mode, ..snapshot(vec![there]) };
            assert_eq!(there.missing(), []);
        }
    }
    let untargeted = Candidate { legs: Legs { has_target: false, ..ALL_LEGS }, ..there };
    assert_eq!(offer(&untargeted, Terms::default()), Offer::Release, "it has content");
}

/// Whether the marker is there or not, the agent would go on removing.
#[test]
fn while_frozen_an_agent_that_removes_something_gets_no_offer() {
    let told = Candidate { held: Some(object(3, true, true)), ..candidate() };
    let frozen = OfferSnapshot { mode: mk_frozen(), ..snapshot(vec![candidate(), told]) };
    assert_eq!(unchanged(&frozen).unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(decide(&frozen).unwrap_err().kind, ErrorKind::Unavailable);
}

#[test]
fn an_offer_that_is_held_is_answered_only_if_nothing_else_is_to_be_said() {
    let held = HeldOffer {
        mode: Mode::Acting,
        agent: Some(mk_agent()),
        held: vec![DeploymentObjectId::new(uuid(7)), DeploymentObjectId::new(uuid(8))],
        wanted: 2,
        current: 2,
    };
    assert_eq!(held.clone().unchanged(), Some(held.held.clone()));
    let nothing = HeldOffer { held: Vec::new(), wanted: 0, current: 0, ..held.clone() };
    assert_eq!(nothing.unchanged(), Some(Vec::new()));
    for other in [
        // A stack is new, or has something newer, or a roll-out.
        HeldOffer { wanted: 3, ..held.clone() },
        HeldOffer { current: 1, ..held.clone() },
        // It holds something that it should not have.
        HeldOffer { wanted: 1, current: 1, ..held.clone() },
        HeldOffer { agent: None, ..held.clone() },
        HeldOffer { mode: mk_frozen(), ..held },
    ] {
        assert_eq!(other.unchanged(), None);
    }
}

#[test]
fn an_agent_that_is_deleted_gets_no_offer() {
    let gone = OfferSnapshot { agent: None, ..snapshot(vec![candidate()]) };
    assert_eq!(unchanged(&gone).unwrap_err().kind, ErrorKind::AgentNotFound);
    assert_eq!(decide(&gone).unwrap_err().kind, ErrorKind::AgentNotFound);
}

fn any_object() -> impl Strategy<Value = Option<ObjectFact>> {
    prop::option::of(
        (1..9_u128, any::<bool>(), any::<bool>())
            .prop_map(|(id, marker, own)| object(id, marker, marker && own)),
    )
}

fn any_candidate() -> impl Strategy<Value = Candidate> {
    let legs = prop::array::uniform4(any::<bool>()).prop_map(
        |[is_registered, has_target, shares_label, shares_annotation]| Legs {
            is_registered,
            has_target,
            shares_label,
            shares_annotation,
        },
    );
    (any::<bool>(), legs, any_object(), any_object()).prop_map(|(is_live, legs, newest, held)| {
        // What is for one agent is the newest of none.
        let newest = newest.map(|one| ObjectFact { is_for_agent: false, ..one });
        Candidate { is_live, legs, newest, held, ..candidate() }
    })
}

proptest! {
    /// Nothing that an agent may have is missing from its offer; nothing is offered without a
    /// holding; and what was written once is not written again.
    #[test]
    fn an_offer_is_complete_and_settles(
        candidates in proptest::collection::vec(any_candidate(), 0..12),
    ) {
        let there = snapshot(candidates.clone());
        let (offered, commit) = decide(&there).unwrap();
        let held = candidates.iter().filter(|one| one.held.is_some()).count();
        prop_assert!(offered.len() >= held, "an absent stack means that it is removed");
        let mut holdings = Vec::new();
        let mut markers = Vec::new();
        for write in &commit.writes {
            let crate::commit::Write::Fleet(write) = write else { panic!("{write:?}") };
            match &**write {
                FleetWrite::Offer(rows) => holdings.extend(rows.clone()),
                FleetWrite::ObjectsMake(made) => markers.extend(made.clone()),
                other => panic!("{other:?}"),
            }
        }
        prop_assert_eq!(commit.is_empty(), unchanged(&there).unwrap().is_some());
        // The next poll finds what was written, and has nothing to write.
        let mut rows = holdings.iter();
        let later = candidates.into_iter().map(|candidate| {
            let released = offer(&candidate, Terms::default()) == Offer::Release;
            let same = |id| match (candidate.newest, candidate.held) {
                (Some(newest), _) if newest.id == id && !released => newest,
                (_, Some(held)) if held.id == id => held,
                _ => ObjectFact { id, ..object(0, true, true) },
            };
            let changed = match offer(&candidate, Terms::default()) {
                Offer::Nothing => None,
                Offer::Object(id) if candidate.held.is_some_and(|held| held.id == id) => None,
                _ => rows.next(),
            };
            match changed {
                Some(row) => Candidate { held: Some(same(row.object_id)), ..candidate },
                None => candidate,
            }
        });
        let later = snapshot(later.collect());
        prop_assert_eq!(unchanged(&later).unwrap(), Some(offered));
        prop_assert!(markers.iter().all(|one| one.agent_id == Some(mk_agent().id)));
    }
}
