//! The fate of one life of the control plane: which points it has passed, and
//! at which point a fault strikes it. A life lasts from a start to a crash.
//!
//! A crash is an end, not an error: the call in which it strikes never returns,
//! and neither does any later call of that life. The plane drops the running
//! futures and continues with the next life.

use std::collections::HashMap;
use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex};

use slipway_core::commit::Commit;
use tokio::sync::watch;
use uuid::Uuid;

use super::journal::Journal;
use super::names;

/// A point in a life: the n-th passage of that name, counted from one.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) name: String,
    pub(super) occurrence: u32,
    /// Whether this life has a claim at that point.
    pub(super) holding: bool,
}

impl Point {
    pub(super) fn is(&self, other: &Self) -> bool {
        self.name == other.name && self.occurrence == other.occurrence
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.occurrence)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The process dies.
    Crash,
    /// The caller gets an error. At a point before an action, nothing was done;
    /// at a point after it, everything was done and only the answer is lost.
    Fail,
    /// The action is performed twice. Only for points before actions.
    Twice,
}

#[derive(Debug)]
pub(super) struct Fate {
    /// Counted from zero over the run.
    pub(super) life: usize,
    journal: Arc<Journal>,
    state: Mutex<State>,
    dead: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    /// Until then the run is in preparation and passes no points.
    armed: bool,
    planned: Option<(Point, Fault)>,
    struck: bool,
    passed: Vec<Point>,
    passages: HashMap<String, u32>,
}

impl Fate {
    pub(super) fn new(
        life: usize,
        planned: Option<(Point, Fault)>,
        armed: bool,
        journal: Arc<Journal>,
    ) -> Self {
        let state =
            State { armed, planned, struck: false, passed: Vec::new(), passages: HashMap::new() };
        Self { life, journal, state: Mutex::new(state), dead: watch::Sender::new(false) }
    }

    /// From here on every passage is a point.
    pub(super) fn arm(&self) {
        self.state.lock().unwrap().armed = true;
    }

    /// From here on no passage is a point.
    pub(super) fn disarm(&self) {
        self.state.lock().unwrap().armed = false;
    }

    /// The name of a commit, with the server that it is about.
    pub(super) fn name_of(&self, commit: &Commit) -> String {
        self.journal.learn(commit);
        let server = names::subjects(commit).into_iter().find_map(|id| self.journal.server(id));
        named(names::of_commit(commit), server)
    }

    /// The name of an action, with the server that it is about.
    pub(super) fn name_of_action(&self, action: &str, attempt: Uuid) -> String {
        named(action.to_owned(), self.journal.server(attempt))
    }

    /// Passes a point; returns the fault that strikes here, if any.
    pub(super) fn meet(&self, name: String) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        if !state.armed {
            return None;
        }
        let occurrence = state.passages.entry(name.clone()).or_default();
        *occurrence += 1;
        let holding = self.journal.is_holding(self.life);
        let point = Point { name, occurrence: *occurrence, holding };
        let fault = state.planned.as_ref().filter(|(planned, _)| planned.is(&point));
        let fault = fault.map(|(_, fault)| *fault);
        state.struck |= fault.is_some();
        state.passed.push(point);
        fault
    }

    /// Passes a point after something was done. Does not return from a crash;
    /// true if the caller has to get an error.
    pub(super) async fn survive(&self, name: String) -> bool {
        match self.meet(name) {
            Some(Fault::Crash) => self.die().await,
            Some(Fault::Fail) => true,
            Some(Fault::Twice) | None => false,
        }
    }

    /// Ends this life.
    pub(super) async fn die(&self) -> ! {
        self.dead.send_replace(true);
        pending().await
    }

    /// Blocks forever in a dead life, so that nothing of it runs any further,
    /// including tasks that it left behind.
    pub(super) async fn alive(&self) {
        if *self.dead.borrow() {
            pending::<()>().await;
        }
    }

    /// Returns when this life has ended.
    pub(super) async fn died(&self) {
        let mut dead = self.dead.subscribe();
        if dead.wait_for(|dead| *dead).await.is_err() {
            pending::<()>().await;
        }
    }

    pub(super) fn struck(&self) -> bool {
        self.state.lock().unwrap().struck
    }

    pub(super) fn passed(&self) -> Vec<Point> {
        self.state.lock().unwrap().passed.clone()
    }
}

fn named(name: String, server: Option<String>) -> String {
    match server {
        Some(server) => format!("{name} of {server}"),
        None => name,
    }
}
