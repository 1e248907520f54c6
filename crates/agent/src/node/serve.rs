//! Runs an enrolled node: sends heartbeats, and drains when the server asks for
//! it. Never ends by itself; a drained node waits to be deleted.

use std::time::Duration;

use reqwest::StatusCode;
use slipway_wire::nodes::plexd::{DrainAcknowledgement, HeartbeatRequest};
use tokio::time::Instant;

use super::client::{Client, Failure};
use super::config::Config;
use super::contact::Contact;
use super::directory::Directory;
use super::enrol;
use super::error::Error;
use super::identity::{Drained, Identity, Leaving};
use super::status::{State, StatusFile};
use crate::retry_delay::{LONGEST, RetryDelay};

pub(crate) async fn serve(
    directory: &Directory,
    config: &Config,
    client: &Client,
    contact: &Contact,
    status: &mut StatusFile<'_>,
    identity: Identity,
) -> Result<std::convert::Infallible, Error> {
    let progress = match Drained::load(directory)? {
        Some(drained) => Progress::Drained(drained),
        None => Progress::Active,
    };
    let work_ends = Instant::now() + work_left(config, &identity)?;
    let mut node = Node {
        directory,
        config,
        client,
        contact,
        status,
        identity,
        progress,
        work_ends,
        delays: RetryDelay::default(),
    };
    node.show(None);
    loop {
        let wait = node.cycle().await?;
        tokio::time::sleep(wait).await;
    }
}

/// The work of a node is a timer that starts with its enrolment. It runs on while
/// the agent restarts and starts over when the machine boots.
fn work_left(config: &Config, identity: &Identity) -> Result<Duration, Error> {
    let done = identity.enrolled_at.elapsed()?.unwrap_or_default();
    // A longer duration than a century could overflow the clock.
    let century = Duration::from_secs(100 * 365 * 86_400);
    Ok(config.busy.saturating_sub(done).min(century))
}

#[derive(Debug)]
enum Progress {
    Active,
    Draining { drain_id: String },
    Drained(Drained),
}

impl Progress {
    fn state(&self) -> State {
        match self {
            Self::Active => State::Active,
            Self::Draining { .. } => State::Draining,
            Self::Drained(_) => State::Drained,
        }
    }

    /// Whether this drain was neither started nor acknowledged.
    fn is_news(&self, asked: &str) -> bool {
        match self {
            Self::Active => true,
            Self::Draining { drain_id } => drain_id != asked,
            Self::Drained(drained) => drained.drain_id != asked,
        }
    }
}

struct Node<'a, 'b> {
    directory: &'a Directory,
    config: &'a Config,
    client: &'a Client,
    contact: &'a Contact,
    status: &'a mut StatusFile<'b>,
    identity: Identity,
    progress: Progress,
    work_ends: Instant,
    delays: RetryDelay,
}

impl Node<'_, '_> {
    /// Sends one heartbeat, and the acknowledgement if it is due. Returns how
    /// long to wait for the next.
    async fn cycle(&mut self) -> Result<Duration, Error> {
        let request = HeartbeatRequest {
            status: Some(self.progress.state().as_str().to_owned()),
            binary_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            binary_checksum: None,
        };
        let trouble = match self.client.heartbeat(&self.identity, &request).await {
            Ok(reply) => {
                self.contact.made();
                if let Some(drain) = reply.drain
                    && self.progress.is_news(&drain.drain_id)
                {
                    self.progress = Progress::Draining { drain_id: drain.drain_id };
                }
                None
            }
            Err(failure) => Some(failure),
        };
        if let Progress::Drained(_) = self.progress {
            return Ok(self.idle(trouble.as_ref()));
        }
        // A failed heartbeat does not delay the acknowledgement: the work is
        // done whether the server received the heartbeat or not.
        let trouble = match self.acknowledge_if_done().await? {
            Acknowledged::Yes => return Ok(self.pace()),
            Acknowledged::NotDue => trouble,
            Acknowledged::Failed(failure) => Some(failure),
        };
        if let (Progress::Active, Some(Failure::Refused { status, .. })) =
            (&self.progress, &trouble)
            && *status == StatusCode::UNAUTHORIZED
            && let Some(identity) =
                enrol::again(self.directory, self.config, self.client, self.contact).await?
        {
            self.identity = identity;
            self.show(None);
            return Ok(self.pace());
        }
        self.show(trouble.as_ref());
        match trouble {
            None => {
                self.delays.reset();
                Ok(self.pace().min(self.until_work_ends()))
            }
            // Only a person can change this, so there is no hurry.
            Some(Failure::Refused { .. }) => Ok(self.slow_pace()),
            Some(failure) => Ok(self.delays.next(failure.retry_after())?.max(self.pace())),
        }
    }

    async fn acknowledge_if_done(&mut self) -> Result<Acknowledged, Error> {
        let Progress::Draining { drain_id } = &self.progress else {
            return Ok(Acknowledged::NotDue);
        };
        if Instant::now() < self.work_ends {
            return Ok(Acknowledged::NotDue);
        }
        Leaving { drain_id }.store(self.directory)?;
        let acknowledgement = DrainAcknowledgement { drain_id: drain_id.clone() };
        match self.client.drain_acknowledge(&self.identity, &acknowledgement).await {
            Ok(()) => {
                self.contact.made();
                let drained = Drained { drain_id: acknowledgement.drain_id };
                drained.store(self.directory)?;
                self.progress = Progress::Drained(drained);
                self.show(None);
                Ok(Acknowledged::Yes)
            }
            Err(failure) => Ok(Acknowledged::Failed(failure)),
        }
    }

    /// After the drain the key is revoked, so 401 is the expected answer and
    /// proves that the server still answers.
    fn idle(&mut self, trouble: Option<&Failure>) -> Duration {
        match trouble {
            Some(Failure::Refused { .. }) => self.contact.made(),
            Some(failure) => tracing::debug!(%failure, "no heartbeat while drained"),
            None => {}
        }
        self.slow_pace()
    }

    fn show(&mut self, trouble: Option<&Failure>) {
        self.status.name_node(&self.identity.node_id);
        let message = match (&self.progress, trouble) {
            (Progress::Active, Some(Failure::Refused { status, .. }))
                if *status == StatusCode::UNAUTHORIZED =>
            {
                "the server does not accept the key of this node (401): it was deregistered or its key revoked; trying on slowly".to_owned()
            }
            (_, Some(failure)) => failure.to_string(),
            (Progress::Active, None) => "enrolled, sending heartbeats".to_owned(),
            (Progress::Draining { .. }, None) => "asked to drain, finishing its work".to_owned(),
            (Progress::Drained(_), None) => "drained, waiting to be taken down".to_owned(),
        };
        self.status.publish(self.progress.state(), message);
    }

    fn pace(&self) -> Duration {
        self.config.heartbeat_interval
    }

    fn slow_pace(&self) -> Duration {
        self.pace().max(LONGEST)
    }

    /// Lets a drain end with the work and not a whole interval later.
    fn until_work_ends(&self) -> Duration {
        match self.progress {
            Progress::Draining { .. } => self.work_ends.saturating_duration_since(Instant::now()),
            Progress::Active | Progress::Drained(_) => Duration::MAX,
        }
    }
}

enum Acknowledged {
    NotDue,
    Yes,
    Failed(Failure),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node::machine::BootMoment;

    fn left(enrolled_at: BootMoment) -> Duration {
        let config = Config {
            api_url: "http://127.0.0.1:1".parse().unwrap(),
            authorities: None,
            project_id: None,
            resource_handle: None,
            hostname: None,
            heartbeat_interval: Duration::from_secs(1),
            orphan_after: Duration::from_secs(600),
            busy: Duration::from_secs(3_600),
        };
        let identity = Identity {
            node_id: "n".to_owned(),
            node_secret_key: crate::secret::StoredSecret::new("s"),
            enrolled_at,
        };
        work_left(&config, &identity).unwrap()
    }

    #[test]
    fn the_work_goes_on_over_a_restart_and_starts_over_with_the_machine() {
        let now = BootMoment::now().unwrap();
        let mut earlier = serde_json::to_value(&now).unwrap();
        earlier["since_boot_ms"] = json!(0);
        let mut other_boot = earlier.clone();
        other_boot["boot_id"] = json!("another");
        assert!(left(serde_json::from_value(earlier).unwrap()) < Duration::from_secs(3_600));
        assert_eq!(left(serde_json::from_value(other_boot).unwrap()), Duration::from_secs(3_600));
    }
}
