//! What must be true: for each handle the resource that fills it, whether it
//! is wanted, and what was done to it.

use std::collections::VecDeque;

use serde_json::Value;

/// How many operations of a handle are remembered for a report.
const REMEMBERED: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Desired {
    Ready,
    Deleted,
}

/// One resource that was accepted.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    pub(super) resource: String,
    pub(super) attempt: String,
    pub(super) xr_name: String,
    pub(super) wanted: Desired,
    /// Its agent was killed or frozen or lost its directory. Only then may its
    /// drain need somebody to force it.
    pub(super) agent_hurt: bool,
    /// Its node was marked as failed, so that the attempt may have to be
    /// retried; without that it must not fail, nor be followed by another.
    pub(super) failed: bool,
}

impl Filling {
    /// From the answer to its declaration.
    pub(super) fn of(resource: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Self {
            resource: text(&resource["id"])?,
            attempt: text(&resource["attempt"]["id"])?,
            xr_name: text(&resource["attempt"]["xr_name"])?,
            wanted: if resource["deletion_id"].is_null() {
                Desired::Ready
            } else {
                Desired::Deleted
            },
            agent_hurt: false,
            failed: false,
        })
    }

    /// Takes over the attempt that followed by a retry; answers the one before.
    pub(super) fn follow(&mut self, resource: &Value) -> Option<String> {
        let next = Self::of(resource).filter(|next| next.attempt != self.attempt)?;
        self.xr_name = next.xr_name;
        self.failed = false;
        self.agent_hurt = false;
        Some(std::mem::replace(&mut self.attempt, next.attempt))
    }
}

/// A request whose answer was lost with its control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsure {
    Declared,
    Deleted,
}

/// One handle.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) handle: String,
    /// The resource that has the handle, as far as is known.
    pub(super) current: Option<Filling>,
    /// Those before it, not yet checked for good.
    pub(super) before: Vec<Filling>,
    pub(super) unsure: Option<Unsure>,
    /// Attempts that failed and were followed by another, not yet checked.
    pub(super) retired: Vec<String>,
    trace: VecDeque<String>,
}

impl Slot {
    pub(super) fn new(number: usize) -> Self {
        Self {
            handle: format!("soak-{number}"),
            current: None,
            before: Vec::new(),
            unsure: None,
            retired: Vec::new(),
            trace: VecDeque::new(),
        }
    }

    pub(super) fn fill(&mut self, filling: Filling) {
        self.before.extend(self.current.replace(filling));
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.current.as_ref().is_some_and(|filling| filling.wanted == Desired::Ready)
    }

    pub(super) fn note(&mut self, line: String) {
        if self.trace.len() == REMEMBERED {
            self.trace.pop_front();
        }
        self.trace.push_back(line);
    }

    pub(super) fn trace(&self) -> impl Iterator<Item = &String> {
        self.trace.iter()
    }

    /// What names this handle in logs.
    pub(super) fn names(&self) -> Vec<&str> {
        let fillings = self.current.iter().chain(&self.before);
        fillings
            .flat_map(|filling| [&*filling.attempt, &*filling.xr_name])
            .chain(self.retired.iter().map(String::as_str))
            .collect()
    }
}
