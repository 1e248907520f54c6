//! What contains many resources: a project, a cluster. Counts attempts by phase
//! and lists some that are blocked.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::resource::part;
use crate::broker::phase::Phase;
use crate::broker::waiting;
use crate::catalog::project::Project;
use crate::deletion::record::{Deletion, DeletionState};
use crate::operations::explanation::{AttemptLine, ExplainedKind, Explanation, PhaseCount};
use crate::placement::cluster::{Cluster, ClusterAssignment};
use crate::placement::namespace::{NamespacePhase, ProviderStatus};
use crate::time::Timestamp;

/// What is known of a project or cluster besides its row.
#[derive(Debug, Clone)]
pub struct ClusterFacts {
    pub now: Timestamp,
    /// How long the row that is due longest has waited; `None` if nothing is due.
    pub lag: Option<Duration>,
    /// The workers that have claims there now, and how many.
    pub holders: Vec<(String, u64)>,
    pub counts: Vec<PhaseCount>,
    /// Some of the blocked attempts.
    pub blocked: Vec<AttemptLine>,
    pub claimed_within: Duration,
}

impl ClusterFacts {
    /// Adds what is stuck to an explanation.
    fn tell(&self, found: &mut Explanation, name: &str, cluster: Option<&Cluster>) {
        let total = |of: fn(&PhaseCount) -> u64| self.counts.iter().map(of).sum::<u64>();
        let (all, blocked) = (total(|count| count.total), total(|count| count.blocked));
        let within = |phases: &[Phase]| -> u64 {
            let of = |count: &&PhaseCount| phases.iter().any(|p| p.as_str() == count.phase);
            self.counts.iter().filter(of).map(|count| count.total).sum()
        };
        let failed = within(&[Phase::Failed]);
        let moving = all - failed - within(&[Phase::Ready, Phase::Deleted]);
        let phases: Map<String, Value> =
            self.counts.iter().map(|count| (count.phase.clone(), json!(count.total))).collect();
        found.facts.insert("attempts", json!(all));
        found.facts.insert("phases", Value::Object(phases));
        let unserved = match (cluster, self.lag) {
            (Some(cluster), Some(lag)) => {
                waiting::partition_not_served(cluster, self.now, lag, self.claimed_within)
            }
            _ => None,
        };
        let served = unserved.is_none();
        // Where nobody records blockers, their number says nothing.
        if served || blocked > 0 {
            found.facts.insert("blocked", json!(blocked));
        }
        found.blockers.extend(unserved);
        found.parts = self.blocked.iter().map(|line| part(line, format!("in {name}"))).collect();
        if blocked > 0 {
            found.waiting_for = Some(format!("what blocks {blocked} of its {all} attempts"));
        } else if moving > 0 {
            found.waiting_for = Some(format!("{moving} of its {all} attempts, none blocked"));
        } else if failed > 0 {
            found.waiting_for = Some(format!(
                "a person to retry or delete the {failed} of its {all} attempts that failed"
            ));
        }
        if !served {
            found.waiting_for = Some("a control plane that serves its cluster".to_owned());
        }
        found.next = if !served {
            "nothing until a control plane serves its cluster".to_owned()
        } else if all == 0 {
            "nothing: it is empty".to_owned()
        } else {
            "the loop observes each of its resources when it is due; explain one to see when"
                .to_owned()
        };
    }
}

/// `cluster` is where the project is placed.
pub fn project(
    project: &Project,
    assignment: Option<&ClusterAssignment>,
    cluster: Option<&Cluster>,
    deletion: Option<&Deletion>,
    facts: &ClusterFacts,
) -> Explanation {
    let (state, since) = match project.deleted_at {
        Some(at) => ("deleted", at),
        None => ("live", project.created_at),
    };
    let id = project.id.as_uuid();
    let mut found =
        Explanation::new(ExplainedKind::Project, id, project.name.as_str(), state, since);
    facts.tell(&mut found, project.name.as_str(), cluster);
    let running = |deletion: &Deletion| {
        let Deletion { id, requested_by, reason, state, .. } = deletion;
        (*state == DeletionState::Running).then(|| format!(
            "it is being deleted, asked for by {requested_by} ({reason}); `slipway explain deletion {id}` says how far"
        ))
    };
    found.notice = deletion.and_then(|found| found.notice().or_else(|| running(found)));
    found.facts.insert("cluster", json!(cluster.map(|cluster| cluster.name.as_str())));
    found.facts.insert("namespace", json!(assignment.map(|placed| &placed.namespace)));
    match assignment {
        None if project.deleted_at.is_none() => {
            found.waiting_for = Some(
                "a placement: nothing can be declared in it before `slipway cluster assign` places it on a cluster"
                    .to_owned(),
            );
        }
        Some(placed) => {
            let ClusterAssignment { namespace, namespace_phase, status, .. } = placed;
            found.waiting_for = match namespace_phase {
                NamespacePhase::Ready | NamespacePhase::Deleted => found.waiting_for.take(),
                NamespacePhase::Terminating => {
                    Some(format!("namespace {namespace} to be cleared and removed"))
                }
                NamespacePhase::Pending
                | NamespacePhase::Provisioning
                | NamespacePhase::Degraded => {
                    Some(format!("namespace {namespace} to become Ready (it is {namespace_phase})"))
                }
            };
            if !status.problems.is_empty() {
                found.facts.insert("namespace_problems", json!(status.problems));
            }
            let providers: Map<String, Value> = status.providers.iter().map(provider).collect();
            if !providers.is_empty() {
                found.facts.insert("providers", Value::Object(providers));
            }
        }
        None => {}
    }
    found
}

/// The phase of a ProviderConfig, by name, and its problem if it has one.
fn provider(status: &ProviderStatus) -> (String, Value) {
    let phase = status.phase;
    let shown = match &status.problem {
        Some(problem) => format!("{phase}: {problem}"),
        None => phase.to_string(),
    };
    (status.config.clone(), json!(shown))
}

pub fn cluster(cluster: &Cluster, facts: &ClusterFacts) -> Explanation {
    let id = cluster.id.as_uuid();
    let created = cluster.created_at;
    let mut found =
        Explanation::new(ExplainedKind::Cluster, id, cluster.name.as_str(), "", created);
    facts.tell(&mut found, cluster.name.as_str(), Some(cluster));
    let verification = cluster.verification.as_ref();
    let problem = verification.and_then(|found| found.problem.as_ref());
    let problem = problem.filter(|_| cluster.deleted_at.is_none());
    let state = match (found.blockers.is_empty(), problem, &cluster.substrate_uid) {
        _ if cluster.deleted_at.is_some() => "deleted",
        (false, ..) => "not served",
        (true, Some(_), _) => "served, but cannot be used",
        (true, None, None) => "never served",
        (true, None, Some(_)) => "served",
    };
    state.clone_into(&mut found.state);
    if let Some(problem) = problem {
        found.facts.insert("problem", json!(problem));
    }
    if let Some(since) = cluster.deleted_at.or(found.blockers.first().map(|found| found.since)) {
        found.since = since;
    }
    found.facts.insert("engine", json!(cluster.engine));
    found.facts.insert("substrate_uid", json!(cluster.substrate_uid));
    found.facts.insert("lag_seconds", json!(facts.lag.map_or(0, |lag| lag.as_secs())));
    let holders: Map<String, Value> =
        facts.holders.iter().map(|(worker, claims)| (worker.clone(), json!(claims))).collect();
    found.facts.insert("claims_held_by", Value::Object(holders));
    if found.waiting_for.is_none() {
        let unserved = cluster.substrate_uid.is_none() && cluster.deleted_at.is_none();
        let unserved = unserved.then_some("a control plane that serves it");
        let repair = problem.map(|problem| format!("a person to repair what was found: {problem}"));
        found.waiting_for = repair.or_else(|| unserved.map(str::to_owned));
    }
    found
}
