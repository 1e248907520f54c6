//! The provider as a test holds it: started, given orders, and looked at from outside.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::boot::{Boot, Machines};
use super::http;
use super::rate::Bucket;
use super::script::{Fault, Script};
use super::world::{Event, World};

/// How often the actions whose time has come are ended.
const TICK: Duration = Duration::from_millis(20);

/// What the provider starts with.
#[derive(Clone, Debug)]
pub struct ProviderOptions {
    pub listen: SocketAddr,
    /// Each token is bound to a project, by name.
    pub tokens: BTreeMap<String, String>,
    /// Requests an hour, of each project.
    pub limit: u32,
    pub action_time: Duration,
    pub boot: Option<Boot>,
}

impl ProviderOptions {
    /// One project, on a free port of loopback.
    pub fn new(token: &str) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            tokens: BTreeMap::from([(token.to_owned(), "main".to_owned())]),
            limit: 3_600,
            action_time: Duration::from_millis(20),
            boot: None,
        }
    }
}

/// The provider, until it is dropped.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) tokens: BTreeMap<String, String>,
    pub(super) worlds: BTreeMap<String, World>,
    pub(super) rates: BTreeMap<String, Bucket>,
    pub(super) script: Script,
    machines: Machines,
    /// Method, path and query of each request.
    pub(super) requests: Vec<String>,
    pub(super) violations: Vec<String>,
    /// Requests that are held back now.
    pub(super) delayed: usize,
}

/// A server as a test looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerView {
    pub id: u64,
    pub name: String,
    pub status: &'static str,
    pub server_type: String,
    pub location: String,
    pub is_protected: bool,
    pub labels: BTreeMap<String, String>,
    pub user_data: String,
}

impl Provider {
    pub async fn start(options: ProviderOptions) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(options.listen).await.context("cannot listen")?;
        let address = listener.local_addr()?;
        let projects = options.tokens.values();
        let state = State {
            worlds: projects.clone().map(|name| (name.clone(), World::default())).collect(),
            rates: projects.map(|name| (name.clone(), Bucket::new(options.limit))).collect(),
            tokens: options.tokens,
            script: Script::new(options.action_time),
            machines: Machines::new(options.boot),
            requests: Vec::new(),
            violations: Vec::new(),
            delayed: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let ticking = Arc::clone(&state);
        let tick = tokio::spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                lock(&ticking).advance();
            }
        });
        let serve = tokio::spawn(http::serve(listener, Arc::clone(&state)));
        Ok(Self { address, state, tasks: vec![tick, serve] })
    }

    /// Where its API is.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The next so many requests whose path, without `/v1`, begins with this go wrong.
    pub fn order(&self, method: &str, path: &str, times: u32, fault: Fault) {
        self.state().script.order(method, path, times, fault);
    }

    /// From now on there is no capacity for `type@location`; the refusal has this code.
    pub fn exhaust(&self, wanted: &str, code: &str) {
        self.state().script.without_capacity.insert(wanted.to_owned(), code.to_owned());
    }

    /// There is capacity everywhere again.
    pub fn replenish(&self) {
        self.state().script.without_capacity.clear();
    }

    /// The action that creates the next server fails.
    pub fn fail_create(&self, message: &str) {
        self.state().script.fail_create = Some(message.to_owned());
    }

    pub fn set_action_time(&self, takes: Duration) {
        self.state().script.action_time = takes;
    }

    /// Sets the rate limit of every project.
    pub fn set_rate(&self, limit: u32, remaining: u32) {
        self.state().rates.values_mut().for_each(|bucket| bucket.set(limit, remaining));
    }

    /// The servers of a project.
    pub fn servers(&self, project: &str) -> Vec<ServerView> {
        let state = self.state();
        let servers =
            state.worlds.get(project).into_iter().flat_map(|world| world.servers.values());
        servers
            .map(|server| ServerView {
                id: server.id,
                name: server.name.clone(),
                status: server.status,
                server_type: server.server_type.clone(),
                location: server.location.clone(),
                is_protected: server.is_protected,
                labels: server.labels.clone(),
                user_data: server.user_data.clone(),
            })
            .collect()
    }

    /// The placement groups of a project, by name, with their labels.
    pub fn placement_groups(&self, project: &str) -> BTreeMap<String, BTreeMap<String, String>> {
        let state = self.state();
        let groups = state.worlds.get(project).into_iter().flat_map(|world| world.groups.values());
        groups.map(|group| (group.name.clone(), group.labels.clone())).collect()
    }

    /// Removes a placement group, as somebody would by hand.
    pub fn remove_placement_group(&self, project: &str, name: &str) {
        if let Some(world) = self.state().worlds.get_mut(project) {
            world.groups.retain(|_, group| group.name != name);
        }
    }

    /// Changes a server, as somebody would by hand.
    pub fn change_server(&self, project: &str, id: u64, change: impl FnOnce(&mut ServerView)) {
        let mut state = self.state();
        let Some(server) =
            state.worlds.get_mut(project).and_then(|world| world.servers.get_mut(&id))
        else {
            return;
        };
        let mut view = ServerView {
            id,
            name: server.name.clone(),
            status: server.status,
            server_type: server.server_type.clone(),
            location: server.location.clone(),
            is_protected: server.is_protected,
            labels: server.labels.clone(),
            user_data: server.user_data.clone(),
        };
        change(&mut view);
        server.name = view.name;
        server.status = view.status;
        server.is_protected = view.is_protected;
        server.labels = view.labels;
    }

    /// Removes a server, as somebody would by hand.
    pub fn remove_server(&self, project: &str, id: u64) {
        let mut state = self.state();
        if let Some(world) = state.worlds.get_mut(project) {
            world.servers.remove(&id);
        }
        state.machines.end(id);
    }

    /// Method, path and query of every request so far.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    /// What did not fit a schema.
    pub fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    /// How many requests are held back now, as a test ordered.
    pub fn delayed(&self) -> usize {
        self.state().delayed
    }

    /// How many machines run.
    pub fn machines(&self) -> usize {
        self.state().machines.count()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl State {
    pub(super) fn advance(&mut self) {
        let now = Instant::now();
        for world in self.worlds.values_mut() {
            for event in world.advance(now) {
                match event {
                    Event::Started(id) => {
                        let document = world.servers.get(&id).map(|server| &*server.user_data);
                        self.machines.start(id, document.unwrap_or_default());
                    }
                    Event::Gone(id) => self.machines.end(id),
                }
            }
        }
    }
}

/// Ignores poisoning: no change can be interrupted halfway.
pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
