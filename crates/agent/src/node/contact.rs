//! The time of the last contact with the server. An agent whose server does not
//! come back is an orphan: its row may be long gone, so that nobody would end it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Means "never" where a sum of times would overflow.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

#[derive(Debug)]
pub(crate) struct Contact {
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    last: Instant,
    allowed: Duration,
}

impl State {
    fn deadline(&self) -> Instant {
        self.last.checked_add(self.allowed).unwrap_or(self.last + FAR)
    }
}

impl Contact {
    /// The start counts as contact: somebody has just started the agent.
    pub(crate) fn new() -> Self {
        Self { state: watch::Sender::new(State { last: Instant::now(), allowed: FAR }) }
    }

    pub(crate) fn made(&self) {
        self.state.send_modify(|state| state.last = Instant::now());
    }

    pub(crate) fn allow_silence_of(&self, allowed: Duration) {
        self.state.send_modify(|state| state.allowed = allowed);
    }

    /// Returns once the server was silent for longer than allowed.
    pub(crate) async fn lost(&self) {
        let mut receiver = self.state.subscribe();
        loop {
            let deadline = receiver.borrow_and_update().deadline();
            tokio::select! {
                () = sleep_until(deadline) => return,
                // Cannot fail: the sender lives in `self`.
                _ = receiver.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn silence_is_counted_from_the_last_contact() {
        let contact = Contact::new();
        contact.allow_silence_of(Duration::from_millis(30));
        contact.made();
        let before = Instant::now();
        contact.lost().await;
        assert!(before.elapsed() >= Duration::from_millis(29), "{:?}", before.elapsed());
    }

    #[test]
    fn an_endless_allowance_does_not_overflow() {
        let state = State { last: Instant::now(), allowed: Duration::MAX };
        assert!(state.deadline() > Instant::now());
    }
}
