//! The model: for each handle the resource that has it, whether it is wanted,
//! and the operations on it.

use std::collections::VecDeque;

use serde_json::Value;

/// How many operations of a handle are kept for a report.
const REMEMBERED: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Desired {
    Ready,
    Deleted,
}

/// One accepted resource.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    pub(super) resource: String,
    pub(super) attempt: String,
    pub(super) xr_name: String,
    pub(super) wanted: Desired,
    /// Whether its agent was killed or frozen or lost its directory. Only then
    /// may its drain need a force.
    pub(super) agent_hurt: bool,
    /// Whether its node was marked as failed, so that the attempt may have to
    /// be retried. Otherwise it must neither fail nor be followed by another
    /// attempt.
    pub(super) failed: bool,
}

impl Filling {
    /// Parses the answer to its declaration.
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

    /// Switches to the attempt that a retry made; returns the previous one.
    pub(super) fn follow(&mut self, resource: &Value) -> Option<String> {
        let next = Self::of(resource).filter(|next| next.attempt != self.attempt)?;
        self.xr_name = next.xr_name;
        self.failed = false;
        self.agent_hurt = false;
        Some(std::mem::replace(&mut self.attempt, next.attempt))
    }
}

/// A request whose answer was lost when its control plane was killed.
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
    /// Earlier resources that are not fully checked yet.
    pub(super) before: Vec<Filling>,
    pub(super) unsure: Option<Unsure>,
    /// Failed attempts that were retried and are not checked yet.
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

    /// The names by which logs refer to this handle.
    pub(super) fn names(&self) -> Vec<&str> {
        let fillings = self.current.iter().chain(&self.before);
        fillings
            .flat_map(|filling| [&*filling.attempt, &*filling.xr_name])
            .chain(self.retired.iter().map(String::as_str))
            .collect()
    }
}
