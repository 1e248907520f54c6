//! Stacks, agents and generators: who has what, who is behind and since when, and why. Never
//! content.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fleet::agent::{Agent, AgentStatus};
use crate::fleet::generator::Generator;
use crate::fleet::progress::{
    AgentLine, Pair, Progress, ProgressState, SILENT_AFTER, StackCounts, progress,
};
use crate::fleet::prune::{PruneRefusal, RefusedPrune};
use crate::fleet::stack::Stack;
use crate::operations::explanation::{ExplainedKind, Explanation, Part};
use crate::time::Timestamp;

/// Agents or stacks that one explanation names; the counts cover all.
const SHOWN: usize = 50;

/// What applies to all pairs.
#[derive(Debug, Clone, Copy)]
pub struct FleetFacts {
    pub now: Timestamp,
    pub is_frozen: bool,
}

/// `pairs` are its agents: those that hold it, and those that anything connects with it.
pub fn stack(stack: &Stack, generator: &str, pairs: &[Pair], facts: FleetFacts) -> Explanation {
    let (state, since) = live_or_deleted(stack.deleted_at, stack.created_at);
    let id = stack.id.as_uuid();
    let mut found = Explanation::new(ExplainedKind::Stack, id, stack.name.as_str(), state, since);
    found.facts.insert("generator", json!(generator));
    let newest = pairs.iter().find_map(|pair| pair.newest);
    if let Some(newest) = newest {
        let kind = if newest.is_marker { "deletion marker" } else { "content" };
        let newest = json!({
            "number": newest.sequence, "kind": kind, "submitted_at": newest.submitted_at,
        });
        found.facts.insert("newest_object", newest);
    } else if stack.last_sequence == 0 {
        found.facts.insert("newest_object", json!("none was submitted yet"));
    }
    let told = described(pairs, facts);
    tell(&mut found, &told, "agents", |pair| {
        ("agent", pair.agent.id.as_uuid(), pair.agent.full_name())
    });
    if stack.deleted_at.is_some() {
        found.notice = Some(format!(
            "it is deleted; `slipway deletion restore stack {}` brings it back while it is kept",
            stack.name
        ));
    } else if told.is_empty() {
        found.waiting_for = Some(
            "an agent: none is registered with its generator, and no target, label or annotation fits one".to_owned(),
        );
        found.next = "nothing until an agent is connected with it".to_owned();
    }
    found
}

/// `pairs` are its stacks: those that it holds, and those that anything connects with it;
/// `refused` is the removal that it does not carry out by itself.
pub fn agent(
    agent: &Agent,
    generators: &[String],
    pairs: &[Pair],
    refused: Option<&RefusedPrune>,
    facts: FleetFacts,
) -> Explanation {
    let heartbeat_at = agent.heartbeat.map(|heartbeat| heartbeat.at);
    let line = AgentLine {
        id: agent.id,
        name: agent.name.to_string(),
        cluster_name: agent.cluster_name.to_string(),
        status: agent.status,
        heartbeat_at,
        can_keep: agent.can_keep,
    };
    let silent = heartbeat_at.filter(|at| at.plus(SILENT_AFTER) < facts.now);
    let (state, since) = match (agent.deleted_at, agent.status, silent) {
        (Some(at), ..) => ("deleted", at),
        (None, AgentStatus::Inactive, _) => ("inactive", agent.updated_at),
        (None, AgentStatus::Active, Some(at)) => ("active, but silent", at),
        (None, AgentStatus::Active, None) if heartbeat_at.is_none() => {
            ("active, but never heard of", agent.created_at)
        }
        (None, AgentStatus::Active, None) => ("active", agent.updated_at),
    };
    let id = agent.id.as_uuid();
    let mut found = Explanation::new(ExplainedKind::Agent, id, line.full_name(), state, since);
    found.facts.insert("generators", json!(generators));
    found.facts.insert("last_heartbeat", json!(heartbeat_at));
    if let Some(cluster) = agent.heartbeat.and_then(|heartbeat| heartbeat.cluster) {
        found.facts.insert("reaches_its_api_server", json!(cluster.is_reachable));
    }
    let told = described(pairs, facts);
    tell(&mut found, &told, "stacks", |pair| {
        ("stack", pair.stack.id.as_uuid(), pair.stack.name.clone())
    });
    if let Some(refused) = refused {
        let refusal = json!({
            "objects": refused.refusal.objects, "of": refused.refusal.total,
            "digest": refused.refusal.digest, "confirmed_at": refused.confirmed_at,
        });
        found.facts.insert("refused_removal", refusal);
    }
    if agent.deleted_at.is_some() {
        found.waiting_for = None;
        found.notice = Some(
            "it is deleted; what it held are leak records, see `slipway leaks list`".to_owned(),
        );
        found.next = "nothing".to_owned();
    } else if agent.status == AgentStatus::Inactive {
        let name = line.full_name();
        found.waiting_for =
            Some(format!("somebody to activate it: `slipway agent activate {name}`"));
        found.next = "nothing until it is activated".to_owned();
    } else if line.inactivity(facts.now).is_some() {
        found.waiting_for = Some("a sign of life; check whether it runs".to_owned());
    } else if let Some(refused) = refused.filter(|refused| refused.confirmed_at.is_none()) {
        let PruneRefusal { objects, total, .. } = &refused.refusal;
        found.waiting_for = Some(format!(
            "somebody to confirm that it removes {objects} of its {total} objects, which it refuses since {}; `slipway agent prune-confirm {}`",
            refused.refused_at,
            line.full_name()
        ));
    } else if generators.is_empty() {
        found.waiting_for = Some(
            "a registration: without one it is offered nothing; `slipway generator register`"
                .to_owned(),
        );
    }
    found
}

/// `agents` are those that are registered with it.
pub fn generator(
    generator: &Generator,
    stacks: &[StackCounts],
    agents: &[AgentLine],
    facts: FleetFacts,
) -> Explanation {
    let (state, since) = live_or_deleted(generator.deleted_at, generator.created_at);
    let id = generator.id.as_uuid();
    let name = generator.name.as_str();
    let mut found = Explanation::new(ExplainedKind::Generator, id, name, state, since);
    found.facts.insert("stacks", json!(stacks.len()));
    found.facts.insert("agents", json!(agents.len()));
    found.facts.insert("accepts_secrets", json!(generator.accepts_secrets));
    let mut open: Vec<&StackCounts> =
        stacks.iter().filter(|one| one.behind() > 0 || one.failed > 0).collect();
    open.sort_by_key(|one| (std::cmp::Reverse((one.failed, one.behind())), one.stack.name.clone()));
    let missing: Vec<(&AgentLine, String)> =
        agents.iter().filter_map(|agent| Some((agent, agent.inactivity(facts.now)?))).collect();
    found.parts = open.iter().take(SHOWN).map(|one| counted(one)).collect();
    let absent = missing.iter().take(SHOWN).map(|(agent, why)| Part {
        kind: "agent".to_owned(),
        id: agent.id.as_uuid(),
        name: agent.full_name(),
        state: agent.status.to_string(),
        since: agent.heartbeat_at,
        about: Some(why.clone()),
        resource_id: None,
        blockers: Vec::new(),
    });
    found.parts.extend(absent);
    if generator.deleted_at.is_some() {
        found.notice = Some(format!(
            "it is deleted; `slipway deletion restore generator {name}` brings it back with its stacks while it is kept"
        ));
    }
    found.waiting_for = match (open.len(), missing.len()) {
        (0, 0) => None,
        (0, silent) => Some(format!("{silent} of its {} agents", agents.len())),
        (behind, _) => {
            Some(format!("agents that are behind with {behind} of its {} stacks", stacks.len()))
        }
    };
    found.next = match found.waiting_for {
        Some(_) => "`slipway explain stack NAME` says for each agent what it waits for".to_owned(),
        None => "nothing".to_owned(),
    };
    found
}

fn live_or_deleted(
    deleted_at: Option<Timestamp>,
    created_at: Timestamp,
) -> (&'static str, Timestamp) {
    deleted_at.map_or(("live", created_at), |at| ("deleted", at))
}

fn counted(one: &StackCounts) -> Part {
    let StackCounts { stack, held, newest, failed } = one;
    let what = match stack.deleted_at {
        Some(_) if *held == 1 => "1 agent still has it".to_owned(),
        Some(_) => format!("{held} agents still have it"),
        None => format!("{newest} of {held} agents that have it were offered the newest object"),
    };
    let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    Part {
        kind: "stack".to_owned(),
        id: stack.id.as_uuid(),
        name: stack.name.clone(),
        state: if stack.deleted_at.is_some() { "deleted" } else { "live" }.to_owned(),
        since: stack.deleted_at,
        about: Some(format!("{what}{failed}")),
        resource_id: None,
        blockers: Vec::new(),
    }
}

/// The worst first.
fn described(pairs: &[Pair], facts: FleetFacts) -> Vec<(&Pair, Progress)> {
    let told = pairs.iter();
    let mut told: Vec<_> =
        told.filter_map(|pair| Some((pair, progress(pair, facts.is_frozen, facts.now)?))).collect();
    told.sort_by_key(|(_, progress)| progress.state);
    told
}

/// Counts the pairs and names the first of them.
fn tell(
    found: &mut Explanation,
    told: &[(&Pair, Progress)],
    noun: &'static str,
    named: impl Fn(&Pair) -> (&'static str, uuid::Uuid, String),
) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, progress) in told {
        *counts.entry(progress.state.as_str()).or_default() += 1;
    }
    let counts: serde_json::Map<String, Value> =
        counts.into_iter().map(|(state, count)| (state.to_owned(), json!(count))).collect();
    found.facts.insert(noun, Value::Object(counts));
    found.parts = told
        .iter()
        .take(SHOWN)
        .map(|(pair, Progress { state, since, why })| {
            let (kind, id, name) = named(pair);
            Part {
                kind: kind.to_owned(),
                id,
                name,
                state: state.to_string(),
                since: *since,
                about: why.clone(),
                resource_id: None,
                blockers: Vec::new(),
            }
        })
        .collect();
    let open = told.iter().filter(|(_, progress)| progress.state.is_open()).count();
    let failed =
        told.iter().filter(|(_, progress)| progress.state == ProgressState::Failed).count();
    found.waiting_for = match (open, failed) {
        (0, _) => None,
        (open, 0) => Some(format!("{open} of its {} {noun}", told.len())),
        (open, failed) => Some(format!("{open} of its {} {noun}; {failed} failed", told.len())),
    };
    found.next = match open {
        0 => "nothing".to_owned(),
        _ => "each agent is offered what it should have when it asks, and tries again by itself"
            .to_owned(),
    };
}
