//! The servers of this installation, in memory: listed by label at most as often as the budget
//! allows, and corrected by the answers to our own writes.
//!
//! A server that is here existed a moment ago. One that is not here may exist: `observe` asks
//! for it before anything is concluded.

use std::collections::BTreeMap;
use std::sync::{Mutex as SyncMutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use slipway_app::ports::substrate::Address;
use tokio::sync::Mutex;

use super::client::{Client, Filter, Session};
use super::error::{ApiError, Reason};
use super::labels;
use super::shapes::{ActionStatus, Server};

/// A list of this age still says something while the rate limit allows no new one.
const STALE: Duration = Duration::from_secs(300);

/// How often the action that makes a server is read while the server does not run.
const ACTION_EVERY: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub(super) struct Servers {
    state: SyncMutex<State>,
    /// Locked while the list is read: of many observations one asks.
    reading: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    known: BTreeMap<u64, Entry>,
    /// When a server was found gone, so that a list which began before does not bring it back.
    gone: BTreeMap<u64, Instant>,
    listed: Option<Listed>,
}

#[derive(Debug, Clone, Copy)]
struct Listed {
    at: Instant,
    pages: u32,
}

#[derive(Debug, Clone)]
struct Entry {
    server: Server,
    /// Of the answer to a request about this server alone.
    answered_at: Option<Instant>,
    creation: Creation,
}

/// The action that makes a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Creation {
    /// Another process sent it. A server that runs was made.
    Unknown,
    Running {
        action: u64,
    },
    Done,
    Failed(String),
}

/// A server that is known.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) server: Server,
    pub(super) creation: Creation,
}

impl Servers {
    /// The server of an address: the one with its name, else the one that names its resource.
    pub(super) fn find(&self, address: &Address) -> Option<Known> {
        let state = self.state();
        let named = state.known.values().find(|entry| entry.server.name == address.name);
        let owner = Some(address.provisioned_resource_id);
        let owned =
            || state.known.values().find(|entry| labels::owner(&entry.server.labels) == owner);
        let entry = named.or_else(owned)?;
        Some(Known { server: entry.server.clone(), creation: entry.creation.clone() })
    }

    /// Keeps what the answer to a request about this server said.
    pub(super) fn answered(&self, server: Server, creation: Option<Creation>) {
        let mut state = self.state();
        state.gone.remove(&server.id);
        let before = state.known.get(&server.id).map(|entry| entry.creation.clone());
        let creation = creation.or(before).unwrap_or(Creation::Unknown);
        let answered_at = Some(Instant::now());
        state.known.insert(server.id, Entry { server, answered_at, creation });
    }

    /// There is no server with this id any more, and never will be: ids are not used again.
    pub(super) fn gone(&self, id: u64) {
        let mut state = self.state();
        state.known.remove(&id);
        state.gone.insert(id, Instant::now());
    }

    /// The deletion of this server was accepted.
    pub(super) fn deleting(&self, id: u64) {
        if let Some(entry) = self.state().known.get_mut(&id) {
            Server::DELETING.clone_into(&mut entry.server.status);
            entry.answered_at = Some(Instant::now());
        }
    }

    /// Forgets everything: it was about another project, maybe.
    pub(super) fn forget(&self) {
        *self.state() = State::default();
    }

    /// Lists again if the list is old.
    pub(super) async fn refresh(
        &self,
        client: &Client,
        session: &Session,
        selector: &str,
    ) -> Result<(), ApiError> {
        if self.is_fresh(client) {
            return Ok(());
        }
        let _reading = self.reading.lock().await;
        if self.is_fresh(client) {
            return Ok(());
        }
        match self.list(session, selector).await {
            Err(error) if error.reason == Reason::RateLimited && self.is_younger(STALE) => Ok(()),
            read => read,
        }
    }

    async fn list(&self, session: &Session, selector: &str) -> Result<(), ApiError> {
        let began = Instant::now();
        let filter = Filter { labels: Some(selector), ..Filter::default() };
        let (mut found, mut page, mut pages) = (Vec::new(), 1, 0);
        loop {
            let listed = session.servers(filter, page).await?;
            found.extend(listed.items);
            pages += 1;
            let Some(next) = listed.next else { break };
            page = next;
        }
        let mut state = self.state();
        let newer = |at: Option<Instant>| at.is_some_and(|at| at >= began);
        let mut before = std::mem::take(&mut state.known);
        let mut known = BTreeMap::new();
        for server in found {
            if newer(state.gone.get(&server.id).copied()) {
                continue;
            }
            let entry = match before.remove(&server.id) {
                Some(entry) if newer(entry.answered_at) => entry,
                Some(entry) => Entry { server, answered_at: None, ..entry },
                None => Entry { server, answered_at: None, creation: Creation::Unknown },
            };
            known.insert(entry.server.id, entry);
        }
        known.extend(before.into_iter().filter(|(_, entry)| newer(entry.answered_at)));
        state.known = known;
        state.gone.retain(|_, at| *at >= began);
        state.listed = Some(Listed { at: began, pages });
        Ok(())
    }

    fn is_fresh(&self, client: &Client) -> bool {
        let pages = self.state().listed.map_or(1, |listed| listed.pages.max(1));
        self.is_younger(client.budget().apart() * pages)
    }

    fn is_younger(&self, than: Duration) -> bool {
        self.state().listed.is_some_and(|listed| listed.at.elapsed() < than)
    }

    /// Reads how the action ended that makes this server, if that is not known yet and worth a
    /// request: once when the server runs or is off, and now and then while it starts.
    pub(super) async fn confirm(
        &self,
        session: &Session,
        known: Known,
        asked: &AskedAbout,
    ) -> Result<Known, ApiError> {
        let id = known.server.id;
        let runs = known.server.status == Server::RUNNING;
        let settled = runs || known.server.status == Server::OFF;
        let action = match (&known.creation, &*known.server.status) {
            (Creation::Done | Creation::Failed(_), _) | (_, Server::DELETING) => return Ok(known),
            (Creation::Running { action }, _) if settled || asked.is_due(id) => {
                session.action(*action).await?
            }
            (Creation::Unknown, _) if !runs && asked.is_due(id) => {
                let actions = session.server_actions(id).await?;
                actions.into_iter().find(|action| action.command == "create_server")
            }
            _ => return Ok(known),
        };
        let creation = match action.map(|action| (action.status, action.error)) {
            Some((ActionStatus::Error, error)) => {
                let said = error.map(|error| format!("{}: {}", error.code, error.message));
                Creation::Failed(said.unwrap_or_else(|| "the provider gave no reason".to_owned()))
            }
            Some((ActionStatus::Success, _)) => Creation::Done,
            Some((ActionStatus::Running, _)) | None => return Ok(known),
        };
        if let Some(entry) = self.state().known.get_mut(&id) {
            entry.creation = creation.clone();
        }
        Ok(Known { creation, ..known })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the actions of a server were read last.
#[derive(Debug, Default)]
pub(super) struct AskedAbout(SyncMutex<BTreeMap<u64, Instant>>);

impl AskedAbout {
    fn is_due(&self, id: u64) -> bool {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.retain(|_, at| at.elapsed() < ACTION_EVERY);
        let is_due = !asked.contains_key(&id);
        asked.entry(id).or_insert_with(Instant::now);
        is_due
    }
}
