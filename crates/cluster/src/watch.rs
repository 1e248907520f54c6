//! One watch per kind. It lists, then follows, and begins again when its version
//! has expired at the server, when the credentials change, or when a list shows
//! that the watch has gone silent.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, pin_mut};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::connection::Connection;
use crate::error::{self, Error};
use crate::index::{Changes, Facts, Index, IndexState, object_key};
use crate::objects::{Listing, PAGE};

/// Bounds of the pause between two attempts at a server that refuses or does not
/// answer.
const SOONEST: Duration = Duration::from_millis(50);
const LATEST: Duration = Duration::from_secs(5);

/// How long the watch may take to show what a list shows already.
const IN_FLIGHT: Duration = Duration::from_secs(2);

/// What is watched, and how.
#[derive(Debug, Clone)]
pub struct WatchConfig {
    pub resource: ApiResource,
    /// Label selector.
    pub labels: String,
    /// How often the watch is compared with a list.
    pub sweep: Duration,
}

/// A running watch. It ends when this is dropped.
#[derive(Debug)]
pub struct Watch<F: Facts> {
    pub index: Arc<Index<F>>,
    task: AbortHandle,
}

impl<F: Facts> Drop for Watch<F> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<F: Facts> Watch<F> {
    /// Starts to watch. Owners of objects that change are added to `changes`.
    pub fn start(
        config: WatchConfig,
        changes: Arc<Changes<F::Owner>>,
        connection: Arc<Connection>,
    ) -> Self {
        let index = Arc::new(Index::new(changes));
        let task = run(config, Arc::clone(&index), connection);
        Self { index, task: tokio::spawn(task).abort_handle() }
    }
}

/// Feeds the index forever.
async fn run<F: Facts>(config: WatchConfig, index: Arc<Index<F>>, connection: Arc<Connection>) {
    let mut pause = SOONEST;
    loop {
        let begun = Instant::now();
        let Some(problem) = follow(&config, &index, &connection).await else { continue };
        // A successful list does not reset the pause: an account that may list
        // and not watch would list everything twenty times a second.
        if begun.elapsed() > LATEST {
            pause = SOONEST;
        }
        // The connection logs an outage of the cluster, once for all its watches.
        if !matches!(index.state(), IndexState::Broken(_)) && !problem.is_outage() {
            let (cluster, kind) = (connection.cluster(), &config.resource.kind);
            tracing::warn!(
                cluster,
                kind,
                %problem,
                "a watch broke off; until it works again each object is read from the API server"
            );
        }
        index.set_state(IndexState::Broken(problem.to_string()));
        let mut generations = connection.generations();
        tokio::select! {
            () = sleep(pause) => {}
            // Other credentials are tried at once.
            _ = generations.changed() => {}
        }
        pause = (pause * 2).min(LATEST);
    }
}

/// Follows the watch of one client until it has to begin again; returns what went
/// wrong, if anything did.
///
/// *Guarantees:* asks for the identity of the cluster before each list that fills
/// the index, so an index never mixes two clusters under one identity.
async fn follow<F: Facts>(
    config: &WatchConfig,
    index: &Index<F>,
    connection: &Connection,
) -> Option<Error> {
    let (client, generation) = match connection.numbered_client().await {
        Ok(numbered) => numbered,
        Err(problem) => return Some(problem),
    };
    let mut generations = connection.generations();
    let cluster = match connection.identity().await {
        Ok(cluster) => cluster,
        Err(problem) => return Some(problem),
    };
    let api = Api::<DynamicObject>::all_with(client, &config.resource);
    let watching = watcher::Config::default().labels(&config.labels).page_size(PAGE);
    let events = watcher::watcher(api, watching);
    pin_mut!(events);
    let mut listing = Some(HashMap::new());
    let compared = compare(config, index, connection);
    pin_mut!(compared);
    loop {
        let event = tokio::select! {
            event = next(&mut events, listing.is_some()) => event,
            _ = generations.wait_for(|now| *now != generation) => return None,
            problem = &mut compared => return problem,
        };
        match event {
            Ok(event) => take(index, &cluster, &mut listing, event),
            Err(error) => return Some(refused(config, connection, error).await),
        }
    }
}

/// The next event. A list has a time limit; a watch may be silent for long.
async fn next(
    events: &mut (impl Stream<Item = watcher::Result<Event<DynamicObject>>> + Unpin),
    listing: bool,
) -> Result<Event<DynamicObject>, watcher::Error> {
    let event = async { Ok(events.next().await) };
    let event = if listing { error::within(event).await } else { event.await };
    match event {
        Ok(Some(event)) => event,
        Ok(None) => Err(watcher::Error::NoResourceVersion),
        Err(error) => Err(watcher::Error::InitialListFailed(error)),
    }
}

/// Records an event in the index. Listed objects are collected until the list is
/// complete.
fn take<F: Facts>(
    index: &Index<F>,
    cluster: &str,
    listing: &mut Option<HashMap<Box<str>, F>>,
    event: Event<DynamicObject>,
) {
    match event {
        Event::Init => *listing = Some(HashMap::new()),
        Event::InitApply(object) => {
            if let Some(facts) = F::parse(&object) {
                listing.get_or_insert_default().insert(key_of(&object), facts);
            }
        }
        Event::InitDone => {
            index.replace(cluster, listing.take().unwrap_or_default());
            index.set_state(IndexState::Current);
        }
        Event::Apply(object) => {
            if let Some(facts) = F::parse(&object) {
                index.observed(key_of(&object), facts);
            }
        }
        Event::Delete(object) => {
            index.deleted(&key_of(&object), number(object.resource_version().as_deref()));
        }
    }
}

fn key_of(object: &DynamicObject) -> Box<str> {
    object_key(object.metadata.namespace.as_deref().unwrap_or_default(), &object.name_any())
}

fn number(version: Option<&str>) -> u64 {
    version.and_then(|text| text.parse().ok()).unwrap_or_default()
}

async fn refused(config: &WatchConfig, connection: &Connection, error: watcher::Error) -> Error {
    let doing =
        if matches!(error, watcher::Error::InitialListFailed(_)) { "list" } else { "watch" };
    let what = format!("{doing} {}", config.resource.plural);
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => connection.classify(&what, &error).await,
        // For example, the version of the watch has expired; a new watch lists first.
        other => Error::refused(format!("could not {what}: {other}")),
    }
}

/// Compares the watch with a list, once per sweep, until a list contains what the
/// watch should have shown: a watch can go silent without an error. Returns what
/// went wrong with a list, if anything did.
async fn compare<F: Facts>(
    config: &WatchConfig,
    index: &Index<F>,
    connection: &Connection,
) -> Option<Error> {
    loop {
        sleep(config.sweep).await;
        // Changed credentials make a new generation, which ends this watch.
        let (listed, version) = match versions(config, connection).await {
            Ok(listed) => listed,
            Err(problem) => return Some(problem),
        };
        sleep(IN_FLIGHT).await;
        if index.lags(&listed, version) {
            let (cluster, kind) = (connection.cluster(), &config.resource.kind);
            tracing::warn!(cluster, kind, "a watch stopped answering and is restarted");
            return None;
        }
    }
}

/// Keys and versions of all objects, and the version of the list.
async fn versions(
    config: &WatchConfig,
    connection: &Connection,
) -> Result<(HashMap<Box<str>, u64>, u64), Error> {
    let listing = Listing { labels: Some(&config.labels), ..Listing::all(&config.resource) };
    let (mut listed, mut token) = (HashMap::new(), None);
    loop {
        let page = connection.list_metadata_page(listing, PAGE, token).await?;
        for object in &page.items {
            let namespace = object.namespace.as_deref().unwrap_or_default();
            let key = object_key(namespace, object.name.as_deref().unwrap_or_default());
            listed.insert(key, number(object.resource_version.as_deref()));
        }
        token = page.next;
        if token.is_none() {
            return Ok((listed, number(page.resource_version.as_deref())));
        }
    }
}
