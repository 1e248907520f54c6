//! Decides what to do about one project namespace, from the rows and the
//! observation. Pure: the placement loop observes, asks here, acts, and asks again.
//!
//! Removal goes in the opposite order of creation: ProviderConfigs, then secrets,
//! then the namespace, each only on proof that the one before is gone, and none of
//! it while a resource may still need it.
//!
//! A removal may arrive late, when a resource needs the object again. So it names
//! the version that was observed, and the object carries a count that moves the
//! version before it is used again:
//!
//! 1. The decision to remove an object that was observed with count *n* records
//!    *n + 1* for it, in the transaction before the removal is sent. The recorded
//!    count never falls.
//! 2. An object counts as in place only if it carries the recorded count. So the
//!    loop writes the count to an object that is needed again, and admits
//!    resources after the answer.
//!
//! Every removal that was sent names a version in which the object carried a
//! lower count, so none of them can land on an object in use. This holds also if
//! two replicas decide at once on observations of any age.
//!
//! A create of the namespace may arrive late as well, when nobody needs it any more.
//! So the time until which it may land is recorded before it is sent, and taken back
//! when it is answered. Until then the namespace does not count as gone.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::{Commit, Write};
use crate::placement::PlacementWrite;
use crate::placement::cluster::ClusterAssignment;
use crate::placement::namespace::{NamespacePhase, NamespaceStatus, ProviderPhase, ProviderStatus};
use crate::placement::shared_objects::{
    Desired, ProjectNamespace, Seen, SharedKey, SharedKind, SharedObjects, Source,
};
use crate::time::Timestamp;

/// A create is sent within the lease of its pass, twenty seconds after it was
/// recorded at the latest, and an API server ends a request within a minute.
pub const CREATE_LANDS_WITHIN: Duration = Duration::from_secs(90);

/// An action outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementAction {
    Put(SharedKey),
    Remove(Removal),
    /// The list of objects with our labels lacks it: ask for it by name.
    Prove(SharedKey),
    /// The namespace is next to go: list what is in it, and remove it if it is
    /// empty.
    RemoveIfEmpty(Removal),
}

/// An object to be removed, as it was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub key: SharedKey,
    pub uid: String,
    pub version: String,
}

/// The actions, and the phase and status to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementDecision {
    pub actions: Vec<PlacementAction>,
    pub phase: NamespacePhase,
    pub status: NamespaceStatus,
}

/// Decides. `wanted` is everything that the project should have there, in the
/// order of creation; empty if the project is leaving.
pub fn decision(
    project_namespace: &ProjectNamespace,
    wanted: &[Desired],
    observed: &SharedObjects,
) -> PlacementDecision {
    let mut view = View::new(project_namespace, observed);
    if project_namespace.is_leaving() { view.leave() } else { view.converge(wanted) }
}

/// Records in the decision until when a create of the namespace in it may land, before
/// it is sent. Returns that time if no other create is on its way: after the answer the
/// observation has it in [`SharedObjects::answered`].
pub fn sends(
    project_namespace: &ProjectNamespace,
    observed: &SharedObjects,
    decision: &mut PlacementDecision,
    within: Duration,
) -> Option<Timestamp> {
    let is_namespace = |key: &SharedKey| key.kind == SharedKind::Namespace;
    let creates = decision.actions.iter().any(|action| {
        matches!(action, PlacementAction::Put(key)
            if is_namespace(key) && !observed.objects.contains_key(key))
    });
    if !creates {
        return None;
    }
    let now = project_namespace.now;
    let pending = project_namespace.assignment.status.pending_create(now);
    if pending.is_some_and(|until| until >= now.plus(within)) {
        // Covers this one too: a create that is refused again and again writes no row.
        return None;
    }
    let until = now.plus(within * 2);
    decision.status.create_lands_until = Some(until);
    if pending.is_some() { None } else { Some(until) }
}

/// Records phase and status; writes nothing if neither changed.
pub fn record(
    project_namespace: &ProjectNamespace,
    decision: &PlacementDecision,
    actor: &Actor,
) -> Commit {
    let before = &project_namespace.assignment;
    if before.namespace_phase == decision.phase && before.status == decision.status {
        return Commit::default();
    }
    let after = ClusterAssignment {
        namespace_phase: decision.phase,
        status: decision.status.clone(),
        ..before.clone()
    };
    let mut commit = Commit {
        writes: vec![Write::Placement(PlacementWrite::ClusterAssignmentUpdate(after))],
        ..Commit::default()
    };
    if before.namespace_phase != decision.phase {
        let subject =
            About::new(before.cluster_id).of(before.project_id).at(before.revision.next());
        commit.audit.push(
            AuditEntry::new("cluster.namespace_phase", actor, subject, project_namespace.now).with(
                json!({
                    "namespace": before.namespace,
                    "from": before.namespace_phase,
                    "to": decision.phase,
                }),
            ),
        );
    }
    commit
}

/// One project's part of the observation.
struct View<'a> {
    project_namespace: &'a ProjectNamespace,
    observed: &'a SharedObjects,
    problems: Vec<String>,
    /// The recorded counts, with those of this decision.
    removals: BTreeMap<String, u64>,
}

impl<'a> View<'a> {
    fn new(project_namespace: &'a ProjectNamespace, observed: &'a SharedObjects) -> Self {
        let removals = project_namespace.assignment.status.removals.clone();
        Self { project_namespace, observed, problems: Vec::new(), removals }
    }

    /// The removal of an object. Every removal raises the recorded count, also above the
    /// one that the object carries: a late create may bring an older count back, and a
    /// pass that was paused meanwhile must not take the object for the one it put.
    fn removal(&mut self, key: &SharedKey, seen: &Seen) -> Removal {
        let count = self.removals.entry(key.counted_as()).or_default();
        *count = (*count).max(seen.removals).saturating_add(1);
        Removal { key: key.clone(), uid: seen.uid.clone(), version: seen.version.clone() }
    }

    fn namespace(&self) -> SharedKey {
        let namespace = self.project_namespace.assignment.namespace.clone();
        let name = namespace.clone();
        SharedKey { namespace, kind: SharedKind::Namespace, name, provider: None }
    }

    /// Objects of this kind in the namespace that are this project's.
    fn ours(&self, kind: SharedKind) -> impl Iterator<Item = (&'a SharedKey, &'a Seen)> {
        let assignment = &self.project_namespace.assignment;
        self.observed.objects.iter().filter(move |(key, seen)| {
            key.namespace == assignment.namespace
                && key.kind == kind
                && seen.owner == Some(assignment.project_id)
        })
    }

    fn unreadable(&mut self, source: &Source) -> bool {
        let Some(problem) = self.observed.unreadable.get(source) else {
            return false;
        };
        if !self.problems.contains(problem) {
            self.problems.push(problem.clone());
        }
        true
    }

    /// Whether a kind could be listed for every provider of the project.
    fn all_readable(&mut self, kind: SharedKind) -> bool {
        let sources: Vec<_> =
            self.observed.unreadable.keys().filter(|source| source.kind == kind).cloned().collect();
        let recorded = &self.project_namespace.assignment.status.providers;
        let concerned = |source: &Source| match &source.provider {
            None => true,
            Some(provider) => recorded.iter().any(|status| status.provider == *provider),
        };
        let blocking: Vec<_> = sources.into_iter().filter(concerned).collect();
        blocking.iter().for_each(|source| {
            self.unreadable(source);
        });
        blocking.is_empty()
    }

    fn converge(&mut self, wanted: &[Desired]) -> PlacementDecision {
        let mut actions = Vec::new();
        let mut base = true;
        for want in wanted.iter().filter(|want| is_base(want.key.kind)) {
            match self.want(want) {
                Need::Fulfilled => {}
                Need::Put => {
                    base = false;
                    actions.push(PlacementAction::Put(want.key.clone()));
                }
                Need::Blocked => {
                    base = false;
                    break;
                }
            }
        }
        let mut status = NamespaceStatus {
            namespace_uid: self.seen(&self.namespace()).map(|seen| seen.uid.clone()),
            create_lands_until: self.pending_create(),
            ..NamespaceStatus::default()
        };
        let before = &self.project_namespace.assignment;
        let phase = match (base, before.namespace_phase) {
            (true, _) => NamespacePhase::Ready,
            (false, NamespacePhase::Ready | NamespacePhase::Degraded) => NamespacePhase::Degraded,
            (false, NamespacePhase::Pending) if actions.is_empty() => NamespacePhase::Pending,
            (false, _) => NamespacePhase::Provisioning,
        };
        if base {
            status.providers = self.providers(wanted, &mut actions);
        } else {
            // Nothing in the namespace is checked before the namespace itself is ready.
            status.providers = before.status.providers.iter().map(waiting).collect();
        }
        status.problems = std::mem::take(&mut self.problems);
        status.removals = std::mem::take(&mut self.removals);
        PlacementDecision { actions, phase, status }
    }

    /// Unless it was answered.
    fn pending_create(&self) -> Option<Timestamp> {
        let pending =
            self.project_namespace.assignment.status.pending_create(self.project_namespace.now);
        pending.filter(|until| self.observed.answered.get(&self.namespace()) != Some(until))
    }

    fn seen(&self, key: &SharedKey) -> Option<&'a Seen> {
        let project = self.project_namespace.assignment.project_id;
        self.observed.objects.get(key).filter(|seen| seen.owner == Some(project))
    }

    fn want(&mut self, want: &Desired) -> Need {
        if self.unreadable(&want.key.source()) {
            return Need::Blocked;
        }
        let shown = shown(&want.key);
        match self.observed.objects.get(&want.key) {
            None => Need::Put,
            Some(seen) if seen.owner != Some(self.project_namespace.assignment.project_id) => {
                self.problems.push(format!(
                    "{shown} is there and not ours; it is left alone: remove it, or move the project to another cluster"
                ));
                Need::Blocked
            }
            Some(seen) if seen.terminating => {
                self.problems.push(format!(
                    "{shown} is being deleted by somebody else; Slipway creates it again once it is gone"
                ));
                Need::Blocked
            }
            Some(seen) if seen.hash.as_ref() != Some(&want.hash) => Need::Put,
            Some(_) => Need::Fulfilled,
        }
    }

    /// Creates the ProviderConfigs in use with their secrets, and releases those that no
    /// resource uses any more. A release is recorded before its first removal.
    fn providers(
        &mut self,
        wanted: &[Desired],
        actions: &mut Vec<PlacementAction>,
    ) -> Vec<ProviderStatus> {
        let mut statuses = Vec::new();
        for used in &self.project_namespace.uses {
            let config = wanted.iter().find(|want| {
                want.key.kind == SharedKind::ProviderConfig
                    && want.key.provider.as_ref() == Some(&used.provider)
                    && want.key.name == used.config
            });
            let secret = config.and_then(|config| config.secret.as_ref());
            let secret = wanted.iter().find(|want| {
                want.key.kind == SharedKind::ExternalSecret && Some(&want.key.name) == secret
            });
            let problem = match (secret, config) {
                (Some(secret), Some(config)) => self.provider(secret, config, actions),
                _ => Some(
                    "its cloud or credential does not say how to reach this provider".to_owned(),
                ),
            };
            let phase =
                if problem.is_none() { ProviderPhase::Ready } else { ProviderPhase::Waiting };
            statuses.push(ProviderStatus {
                provider: used.provider.clone(),
                config: used.config.clone(),
                credential_id: used.credential_id,
                phase,
                problem,
            });
        }
        self.release(wanted, &mut statuses, actions);
        statuses.sort_by(|one, other| {
            (&one.provider, &one.config).cmp(&(&other.provider, &other.config))
        });
        statuses
    }

    /// The secret first: with a ProviderConfig that points to no secret, a
    /// provider would fail where it could have waited.
    fn provider(
        &mut self,
        secret: &Desired,
        config: &Desired,
        actions: &mut Vec<PlacementAction>,
    ) -> Option<String> {
        let before = self.problems.len();
        for want in [secret, config] {
            match self.want(want) {
                Need::Fulfilled => {}
                Need::Put => {
                    let put = PlacementAction::Put(want.key.clone());
                    // Two ProviderConfigs may read one secret.
                    if !actions.contains(&put) {
                        actions.push(put);
                    }
                    return Some(format!("{} is being applied", shown(&want.key)));
                }
                Need::Blocked => {
                    // A problem of the provider, not of the namespace.
                    let problem = self.problems.split_off(before).pop();
                    return Some(
                        problem.unwrap_or_else(|| format!("{} is not there", shown(&want.key))),
                    );
                }
            }
        }
        let ready = self.seen(&secret.key).and_then(|seen| seen.ready.clone());
        match ready {
            Some(Ok(())) => None,
            Some(Err(problem)) => Some(format!(
                "the secret {} is missing: External Secrets says: {problem}",
                secret.key.name
            )),
            None => Some(format!(
                "the secret {} is missing: External Secrets has not said anything yet",
                secret.key.name
            )),
        }
    }

    fn release(
        &mut self,
        wanted: &[Desired],
        statuses: &mut Vec<ProviderStatus>,
        actions: &mut Vec<PlacementAction>,
    ) {
        let is_wanted = |key: &SharedKey| wanted.iter().any(|want| want.key == *key);
        let mut configs_left = false;
        let before = self.project_namespace.assignment.status.clone();
        let surplus = self.ours(SharedKind::ProviderConfig).filter(|(key, _)| !is_wanted(key));
        for (key, seen) in surplus.collect::<Vec<_>>() {
            configs_left = true;
            let Some(recorded) = before.provider(key) else {
                // No recorded use explains it, so it is left alone.
                continue;
            };
            if recorded.phase == ProviderPhase::Releasing && !seen.terminating {
                actions.push(PlacementAction::Remove(self.removal(key, seen)));
            }
            statuses.push(ProviderStatus {
                phase: ProviderPhase::Releasing,
                problem: Some("no resource uses it any more".to_owned()),
                ..recorded.clone()
            });
        }
        for recorded in &before.providers {
            let kind = SharedKind::ProviderConfig;
            let source = Source { kind, provider: Some(recorded.provider.clone()) };
            let unread = self.observed.unreadable.get(&source);
            let is_other = |status: &ProviderStatus| {
                (&status.provider, &status.config) != (&recorded.provider, &recorded.config)
            };
            if let Some(problem) = unread.filter(|_| statuses.iter().all(is_other)) {
                // Nobody knows whether it is gone, so it is not forgotten.
                statuses.push(ProviderStatus {
                    phase: ProviderPhase::Releasing,
                    problem: Some(problem.clone()),
                    ..recorded.clone()
                });
            }
        }
        if configs_left || !self.all_readable(SharedKind::ProviderConfig) {
            return;
        }
        let surplus = self.ours(SharedKind::ExternalSecret).filter(|(key, _)| !is_wanted(key));
        for (key, seen) in surplus.filter(|(_, seen)| !seen.terminating).collect::<Vec<_>>() {
            actions.push(PlacementAction::Remove(self.removal(key, seen)));
        }
    }

    fn leave(&mut self) -> PlacementDecision {
        let before = &self.project_namespace.assignment;
        let mut status = NamespaceStatus { problems: Vec::new(), ..before.status.clone() };
        let mut actions = Vec::new();
        let mut phase = NamespacePhase::Terminating;
        if self.project_namespace.resources > 0 {
            self.problems.push(format!(
                "{} resource(s) still live there; the namespace is deleted after them",
                self.project_namespace.resources
            ));
        } else if before.namespace_phase == NamespacePhase::Deleted {
            phase = NamespacePhase::Deleted;
        } else if before.namespace_phase == NamespacePhase::Terminating && self.clear(&mut actions)
        {
            phase = NamespacePhase::Deleted;
            status = NamespaceStatus::default();
        }
        // Otherwise this pass only records the intent and touches nothing yet.
        if phase != NamespacePhase::Deleted {
            status.removals = std::mem::take(&mut self.removals);
        }
        status.problems = std::mem::take(&mut self.problems);
        PlacementDecision { actions, phase, status }
    }

    /// Removes the next kind that is left. True when nothing is left.
    fn clear(&mut self, actions: &mut Vec<PlacementAction>) -> bool {
        for kind in [SharedKind::ProviderConfig, SharedKind::ExternalSecret] {
            if !self.all_readable(kind) {
                return false;
            }
            let left: Vec<_> = self.ours(kind).collect();
            for (key, seen) in &left {
                if seen.terminating {
                    self.problems.push(format!("{} is being deleted and not gone yet", shown(key)));
                } else {
                    actions.push(PlacementAction::Remove(self.removal(key, seen)));
                }
            }
            if !left.is_empty() {
                return false;
            }
        }
        let key = self.namespace();
        if self.unreadable(&key.source()) {
            return false;
        }
        let made = self.project_namespace.assignment.status.namespace_uid.as_deref();
        match self.observed.objects.get(&key) {
            None if self.observed.absent.contains(&key) => self.no_create_pending(),
            None => {
                actions.push(PlacementAction::Prove(key));
                false
            }
            Some(seen) if seen.owner != Some(self.project_namespace.assignment.project_id) => {
                // Somebody else may reuse the name; with another uid, ours is gone.
                let is_ours = made == Some(&*seen.uid);
                if is_ours {
                    self.problems.push(format!(
                        "somebody took our labels off {}, so it is left alone: remove it by hand, or put the labels back",
                        shown(&key)
                    ));
                }
                !is_ours
            }
            Some(seen) if seen.terminating => {
                self.problems.push(format!(
                    "{} is being deleted; Kubernetes waits for what is left in it",
                    shown(&key)
                ));
                false
            }
            Some(seen) => {
                actions.push(PlacementAction::RemoveIfEmpty(self.removal(&key, seen)));
                false
            }
        }
    }

    fn no_create_pending(&mut self) -> bool {
        let Some(until) = self.pending_create() else { return true };
        let shown = shown(&self.namespace());
        self.problems.push(format!(
            "{shown} is not there, but a request to create it was not answered and may be carried out until {until}"
        ));
        false
    }
}

enum Need {
    Fulfilled,
    Put,
    /// Not possible now; the problem is recorded.
    Blocked,
}

const fn is_base(kind: SharedKind) -> bool {
    matches!(kind, SharedKind::Namespace | SharedKind::RoleBinding | SharedKind::ResourceQuota)
}

fn waiting(status: &ProviderStatus) -> ProviderStatus {
    match status.phase {
        ProviderPhase::Releasing => status.clone(),
        ProviderPhase::Waiting | ProviderPhase::Ready => ProviderStatus {
            phase: ProviderPhase::Waiting,
            problem: Some("the namespace is not Ready".to_owned()),
            ..status.clone()
        },
    }
}

fn shown(key: &SharedKey) -> String {
    format!("{} {}", key.kind, key.name)
}

#[cfg(test)]
mod tests;
