//! What goes wrong, as a test orders it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is carried out and its answer is lost.
    LoseAnswer,
    /// It is not carried out, and nobody answers.
    Drop,
    /// It is carried out after this time, also if its client has gone.
    Delay(Duration),
    /// It is not carried out; this status with this code is the answer.
    Answer(u16, String),
}

/// A fault of the next requests of one kind.
#[derive(Clone, Debug)]
struct Order {
    method: String,
    /// The path begins with this.
    path: String,
    left: u32,
    fault: Fault,
}

/// The orders of a test.
#[derive(Debug, Default)]
pub(super) struct Script {
    orders: VecDeque<Order>,
    /// The code of the refusal, by `type@location`.
    pub(super) without_capacity: BTreeMap<String, String>,
    /// The action that creates the next server ends with this error.
    pub(super) fail_create: Option<String>,
    /// How long an action takes.
    pub(super) action_time: Duration,
}

impl Script {
    pub(super) fn new(action_time: Duration) -> Self {
        Self { action_time, ..Self::default() }
    }

    pub(super) fn order(&mut self, method: &str, path: &str, times: u32, fault: Fault) {
        let (method, path) = (method.to_owned(), path.to_owned());
        self.orders.push_back(Order { method, path, left: times, fault });
    }

    /// The fault of this request, if one is ordered.
    pub(super) fn fault(&mut self, method: &str, path: &str) -> Option<Fault> {
        let found = |order: &&mut Order| {
            order.left > 0 && order.method == method && path.starts_with(&order.path)
        };
        let order = self.orders.iter_mut().find(found)?;
        order.left -= 1;
        Some(order.fault.clone())
    }
}
