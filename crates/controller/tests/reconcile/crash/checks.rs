//! What must hold after a run, whatever fault struck. Each check returns texts,
//! empty if all is well, so that one run reports every violation.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use slipway_app::broker::port::AttemptFilter;
use slipway_app::events::port::PositionedEvent;
use slipway_app::nodes::enrol;
use slipway_app::ports::store::Page;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::phase::Phase;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::{deletion_verification, event};
use slipway_core::deletion::record::DeletionState;
use slipway_core::ids::{DeletionId, EventId};
use slipway_core::nodes::node::Node;
use slipway_core::subject::SubjectKind;
use uuid::Uuid;

use super::plane::{Plane, mk_register};
use super::raw::Raw;
use super::scenarios::Filling;
use crate::simulated::Performed;
use crate::world::World;

const EVERYTHING: u32 = 1_000_000;
/// A claim that nobody released would block the row for 30 s; the longest
/// intended wait is the second after a database fault.
const SOON: Duration = Duration::from_millis(1_500);

/// How far the test has read the events of a database.
#[derive(Default)]
pub(super) struct Reader {
    position: i64,
    ids: BTreeSet<EventId>,
    announced: BTreeSet<(Uuid, i64, String)>,
}

impl Reader {
    /// Reads the events since the last call. Positions are dense, and no
    /// message id and no event occurs twice in the whole life of the database.
    pub(super) async fn read(
        &mut self,
        world: &World,
        wrong: &mut Vec<String>,
    ) -> Vec<PositionedEvent> {
        let page = Page { after: Some(self.position), limit: EVERYTHING };
        let events = world.context.stores.events.event_list(page).await.unwrap();
        for event in &events {
            self.position += 1;
            if event.position != self.position {
                wrong.push(format!("position {} where {} was due", event.position, self.position));
                self.position = event.position;
            }
            let announced = (event.aggregate_id, event.revision.0, event.event_type.clone());
            if !self.ids.insert(event.id) || !self.announced.insert(announced) {
                wrong.push(format!("announced twice: {event:?}"));
            }
            if event.payload["EventID"] != json!(event.id) {
                wrong.push(format!("the payload names another message: {event:?}"));
            }
        }
        events
    }
}

/// Checks a finished run. `events` are those of this run.
pub(super) async fn check(
    plane: &Plane<'_>,
    raw: &mut Raw,
    fillings: &[Filling],
    events: &[PositionedEvent],
) -> Vec<String> {
    let world = plane.world;
    let mut wrong = plane.journal.violations();
    let page = Page { after: None, limit: EVERYTHING };
    let nodes = world.context.stores.nodes.node_list(page).await.unwrap();
    let mut created = false;
    for filling in fillings {
        check_events(filling, events, &mut wrong);
        check_in_use(world, filling, &mut wrong).await;
        if let Some(deletion) = filling.purged {
            check_purged(world, raw, filling, deletion, &mut wrong).await;
            continue;
        }
        let loaded = world.context.stores.broker.attempt_load(&[filling.attempt]).await.unwrap();
        let [Ok(seen)] = &loaded[..] else { panic!("{loaded:?}") };
        created |= world.substrate.performed(seen.attempt.xr_name()).contains(&Performed::Created);
        let of_attempt = |node: &&Node| node.provisioned_resource_id == filling.attempt;
        let nodes: Vec<_> = nodes.iter().filter(of_attempt).collect();
        check_state(seen, filling, plane.longest_rest(), &mut wrong);
        // If the answer of the last commit was lost, the loop runs one more tick.
        if seen.attempt.phase() == Phase::Deleted && seen.due_at.is_some() && !plane.is_forgiving()
        {
            wrong.push(format!("what is proven gone is due {:?}", seen.due_at));
        }
        check_objects(world, seen, &mut wrong);
        check_nodes(seen, &nodes, &mut wrong);
        let deletion = seen.resource.deletion_id.map(|id| id.as_uuid());
        if deletion.is_some_and(|id| events.iter().all(|event| event.aggregate_id != id)) {
            wrong.push(format!("nothing of deletion {deletion:?} was announced"));
        }
        check_audit(world, raw, seen, filling, &nodes, &mut wrong).await;
        let leaks = raw.leaks(filling.attempt).await;
        let resolved = ("composite".to_owned(), true);
        if leaks != vec![resolved; usize::from(filling.leaked)] {
            wrong.push(format!("the leak records (kind, resolved) are {leaks:?}"));
        }
    }
    let announced: usize = fillings.iter().map(|filling| filling.events.len()).sum();
    let of_attempts = events.iter().filter(|event| event.event_type.starts_with("broker."));
    let of_attempts = of_attempts.count();
    if of_attempts != announced {
        wrong.push(format!("{of_attempts} events, not {announced}"));
    }
    check_deletions(world, events, &mut wrong).await;
    check_tokens(plane, &nodes, &mut wrong).await;
    if plane.journal.tokens().is_empty() && created {
        wrong.push("an object was made and no token seen; is the journal kept?".to_owned());
    }
    wrong
}

/// Nothing of it is left, and each step of the purge is audited once.
async fn check_purged(
    world: &World,
    raw: &mut Raw,
    filling: &Filling,
    deletion: DeletionId,
    wrong: &mut Vec<String>,
) {
    let broker = &world.context.stores.broker;
    let attempts = broker.attempt_load(&[filling.attempt]).await.unwrap();
    let resource = broker.resource_fetch(filling.resource).await.unwrap();
    let tokens = raw.tokens(filling.attempt).await;
    let quiet = raw.quiet_changes(filling.attempt.as_uuid()).await;
    if !attempts.is_empty() || resource.is_some() || !tokens.is_empty() || !quiet.is_empty() {
        wrong.push(format!("left after a purge: {attempts:?} {resource:?} {tokens:?} {quiet:?}"));
    }
    let entries = raw.audit(deletion.as_uuid()).await;
    for verb in ["deletion.purge", "deletion.purged"] {
        let count = entries.iter().filter(|entry| entry.verb == verb).count();
        if count != 1 {
            wrong.push(format!("{verb} is audited {count} times: {entries:?}"));
        }
    }
}

/// A resource that is not deleted has exactly one attempt, and that one is in use.
async fn check_in_use(world: &World, filling: &Filling, wrong: &mut Vec<String>) {
    let broker = &world.context.stores.broker;
    let of = AttemptFilter { resource: Some(filling.resource), ..AttemptFilter::default() };
    let lines = broker.attempt_lines(of, 100).await.unwrap();
    let live: Vec<_> = lines.iter().filter(|line| line.phase != "Deleted").collect();
    let found = broker.resource_fetch(filling.resource).await.unwrap();
    let lives = found.as_ref().is_some_and(|seen| seen.resource.deleted_at.is_none());
    let surges = found.is_some_and(|seen| seen.resource.surge.is_some());
    if live.len() != usize::from(lives) || live.iter().any(|line| !line.in_use) || surges {
        wrong.push(format!("not exactly one attempt is in use: {lines:?}, surge: {surges}"));
    }
}

fn check_state(
    seen: &ResourceSnapshot,
    filling: &Filling,
    longest_rest: Duration,
    wrong: &mut Vec<String>,
) {
    let phase = seen.attempt.phase();
    if phase != filling.phase || seen.resource.id != filling.resource {
        wrong.push(format!("it ended in {phase}, not {}", filling.phase));
    }
    // If the answer of a record was lost, the row shows a fault until the next
    // tick, which is due soon; the run may end before it.
    let passing = |code| {
        matches!(code, BlockerCode::InternalError | BlockerCode::NodeDeregistrationFailed)
            && seen.due_at.is_some_and(|due| due <= seen.now.plus(SOON))
    };
    if seen.blockers.iter().any(|blocker| !passing(blocker.code)) {
        wrong.push(format!("blockers were left: {:?}", seen.blockers));
    }
    let by_then = seen.now.plus(SOON.max(longest_rest));
    if phase == Phase::Ready && seen.due_at.is_none_or(|due| due > by_then) {
        wrong.push(format!("the next look is due {:?}, and it is {:?}", seen.due_at, seen.now));
    }
    let proven = seen.attempt.absence_proven_at();
    if proven.is_some() != (phase == Phase::Deleted) {
        wrong.push(format!("in {phase} absence was proven at {proven:?}"));
    }
    // An attempt that another one followed is gone, but its resource is not.
    let leaving = phase.is_deletion() && !filling.followed;
    if seen.deletion.is_some() != leaving || seen.resource.deleted_at.is_some() != leaving {
        wrong.push(format!("in {phase} the deletion is {:?}", seen.deletion));
    }
}

/// Uses the substrate's own journal: never two creations without a removal
/// between, and at the end one object or none.
fn check_objects(world: &World, seen: &ResourceSnapshot, wrong: &mut Vec<String>) {
    let name = seen.attempt.xr_name();
    let performed = world.substrate.performed(name);
    let mut lives = false;
    for performed in &performed {
        let fits = match performed {
            Performed::Created => !lives,
            Performed::Updated | Performed::Deleted | Performed::Removed => lives,
        };
        if !fits {
            wrong.push(format!("{performed:?} does not follow what was before: {performed:?}"));
        }
        lives = matches!(performed, Performed::Created | Performed::Updated);
    }
    if lives != (seen.attempt.phase() == Phase::Ready)
        || world.substrate.object(name).is_some() != lives
    {
        wrong.push(format!("in {} the object's story is {performed:?}", seen.attempt.phase()));
    }
}

fn check_nodes(seen: &ResourceSnapshot, nodes: &[&Node], wrong: &mut Vec<String>) {
    let registered = nodes.iter().filter(|node| node.is_registered()).count();
    if registered != usize::from(seen.attempt.phase() == Phase::Ready) {
        wrong.push(format!("{registered} registered nodes in {}", seen.attempt.phase()));
    }
    let tokens: BTreeSet<_> = nodes.iter().map(|node| node.bootstrap_token_id).collect();
    if tokens.len() != nodes.len() {
        wrong.push(format!("a token enrolled two: {nodes:?}"));
    }
}

fn check_events(filling: &Filling, events: &[PositionedEvent], wrong: &mut Vec<String>) {
    let attempt = filling.attempt.as_uuid();
    let mine: Vec<_> = events.iter().filter(|event| event.aggregate_id == attempt).collect();
    let types: Vec<_> = mine
        .iter()
        .map(|event| event.event_type.trim_start_matches("broker.ProvisionedResource"))
        .collect();
    if types != filling.events {
        wrong.push(format!("the events are {types:?}, not {:?}", filling.events));
    }
    if mine.windows(2).any(|pair| pair[0].revision >= pair[1].revision) {
        wrong.push(format!("the events are not in the order of revisions: {mine:?}"));
    }
}

/// Every state that a deletion of this run entered is announced exactly once, in order.
async fn check_deletions(world: &World, events: &[PositionedEvent], wrong: &mut Vec<String>) {
    let of_deletions: Vec<_> =
        events.iter().filter(|event| event.event_type.starts_with("deletion.")).collect();
    let ids: BTreeSet<_> = of_deletions.iter().map(|event| event.aggregate_id).collect();
    for id in ids {
        let found = world.context.stores.deletion.deletion_fetch(DeletionId::new(id)).await;
        let found = found.unwrap().unwrap();
        // What is a row of ours goes with the request.
        let rows = [SubjectKind::Cloud, SubjectKind::Stack, SubjectKind::Generator];
        let (state, at_once) = (found.state, rows.contains(&found.target.kind));
        let own = of_deletions.iter().filter(|event| event.aggregate_id == id);
        let types: Vec<_> = own.map(|event| event.event_type.as_str()).collect();
        let expected: &[&str] = match state {
            DeletionState::Running => &["deletion.Started"],
            DeletionState::Done => &["deletion.Started", "deletion.Done"],
            DeletionState::Restored => &["deletion.Started", "deletion.Done", "deletion.Restored"],
            DeletionState::Cancelled => &["deletion.Scheduled", "deletion.Cancelled"],
            DeletionState::Purged => {
                &["deletion.Started", "deletion.Done", "deletion.Purging", "deletion.Purged"]
            }
            DeletionState::Scheduled | DeletionState::Purging => &[],
        };
        let expected = if at_once { expected.get(1..).unwrap_or_default() } else { expected };
        if types != expected {
            wrong.push(format!("deletion {id} is {state} and its events are {types:?}"));
        }
    }
}

/// Every state change of the attempt is written exactly once: in the audit if it was
/// announced, else among the quiet changes. What else happened to the attempt, its
/// nodes and its tokens is audited exactly once.
async fn check_audit(
    world: &World,
    raw: &mut Raw,
    seen: &ResourceSnapshot,
    filling: &Filling,
    nodes: &[&Node],
    wrong: &mut Vec<String>,
) {
    let page = Page { after: None, limit: 10_000 };
    let stores = &world.context.stores;
    let mut history = stores.broker.history_list(seen.attempt.id(), page).await.unwrap();
    history.reverse();
    let mut before = None;
    let (mut declared, mut deleted) = (0, 0);
    let (mut announced, mut quiet) = (Vec::new(), Vec::new());
    for line in history {
        if line.from != before {
            wrong.push(format!("history goes on at {:?}, not {before:?}", line.from));
        }
        before = Some(line.to.clone());
        let left = line.from.as_deref().and_then(Phase::parse);
        let entered = Phase::parse(&line.to).unwrap();
        match left {
            None => declared += 1,
            // Only a request leads from one group of phases to the other.
            Some(left) if left.is_deletion() != entered.is_deletion() => deleted += 1,
            Some(left) if event::of_transition(entered).is_some() => {
                announced.push((left.to_string(), line.to));
            }
            Some(left) => quiet.push((left.to_string(), line.to)),
        }
    }
    if before.as_deref() != Some(seen.attempt.phase().as_str()) {
        wrong.push(format!("history ends with {before:?}"));
    }
    let attempt = seen.attempt.id().as_uuid();
    let entries = raw.audit(attempt).await;
    let phases = entries.iter().filter(|entry| entry.verb == "provisioned_resource.phase");
    let mut audited: Vec<_> = phases
        .map(|entry| {
            if entry.changed_id != Some(attempt) {
                wrong.push(format!("not in the history of {attempt}: {entry:?}"));
            }
            (entry.from.clone().unwrap_or_default(), entry.to.clone().unwrap_or_default())
        })
        .collect();
    let mut unannounced = raw.quiet_changes(attempt).await;
    for (written, expected) in [(&mut audited, &mut announced), (&mut unannounced, &mut quiet)] {
        written.sort();
        expected.sort();
        if written != expected {
            wrong.push(format!("the transitions {expected:?} are written as {written:?}"));
        }
    }
    let mut claims = vec![
        (seen.resource.id.as_uuid(), "resource.declare", declared),
        // What was made beside another one, and went, was asked for by the same verb.
        (seen.resource.id.as_uuid(), filling.order, deleted * (1 + usize::from(filling.beside))),
    ];
    let gone = seen.attempt.phase() == Phase::Deleted;
    claims.push((attempt, deletion_verification::PROVEN, usize::from(gone)));
    claims.push((attempt, deletion_verification::FOUND, usize::from(filling.leaked)));
    let follows = usize::from(seen.attempt.attempt() > 1 && !filling.beside);
    claims.push((attempt, "provisioned_resource.follow", follows));
    claims.push((seen.resource.id.as_uuid(), "plan.approve", filling.approvals));
    for node in nodes {
        let id = node.id.as_uuid();
        claims.push((id, "node.enrol", 1));
        claims.push((id, "node.drain", usize::from(node.drain.is_some())));
        claims.push((id, "node.deregister", usize::from(!node.is_registered())));
    }
    // At the end of every scenario each token has been used or replaced. If a
    // crash followed right after the mint, nobody knows the token's text, but
    // the token is revoked all the same.
    for (token, open) in raw.tokens(filling.attempt).await {
        let made = raw.audit(token).await;
        let made =
            made.iter().filter(|entry| ["token.mint", "token.issue"].contains(&&*entry.verb));
        if made.count() != 1 {
            wrong.push(format!("token {token} is not audited once as made"));
        }
        if open {
            wrong.push(format!("token {token} is left open"));
        }
    }
    for (subject, verb, expected) in claims {
        let entries = raw.audit(subject).await;
        let count = entries.iter().filter(|entry| entry.verb == verb).count();
        if count != expected {
            wrong.push(format!("{verb} of {subject} is audited {count} times, not {expected}"));
        }
    }
}

/// No token that was ever sent out enrols anybody now, with one intended
/// exception: the node that used it, with its key, before its first heartbeat.
async fn check_tokens(plane: &Plane<'_>, nodes: &[Node], wrong: &mut Vec<String>) {
    const STRANGER: [u8; 32] = [77; 32];
    let world = plane.world;
    for token in plane.journal.tokens() {
        for key in plane.keys.iter().copied().chain([STRANGER]) {
            let answer = enrol::enrol(&world.context, mk_register(&token, key)).await;
            let Ok(answer) = answer else { continue };
            let known = nodes.iter().find(|node| node.id == answer.node_id);
            let again = known.is_some_and(|node| {
                node.is_registered() && node.last_heartbeat_at.is_none() && node.public_key == key
            });
            if !again {
                wrong.push(format!("a token was used again, with key {key:?}: {known:?}"));
            }
        }
    }
}
