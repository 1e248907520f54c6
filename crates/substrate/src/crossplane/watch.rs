//! One watch per kind: lists, then follows, and begins anew when the server has
//! forgotten where it was, when the credentials change, or when a list shows
//! that the watch has gone silent.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, pin_mut};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};
use slipway_core::blueprint::CompositeType;
use tokio::time::{Instant, sleep};

use super::connection::Connection;
use super::fold::Entry;
use super::index::{Index, Standing, place};
use super::trouble;

/// Objects in a page of a list.
pub(super) const PAGE: u32 = 500;

/// Between two attempts at a server that refuses or is away.
const SOONEST: Duration = Duration::from_millis(50);
const LATEST: Duration = Duration::from_secs(5);

/// What a list shows before the watch may take this long to show it.
const IN_FLIGHT: Duration = Duration::from_secs(2);

/// What is watched, and how.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) resource: ApiResource,
    /// Selects what this installation made.
    pub(super) selector: String,
    /// How often a list is held against the watch.
    pub(super) sweep: Duration,
}

pub(super) fn resource(kind: &CompositeType) -> ApiResource {
    ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    }
}

/// Feeds the index for ever. Ends with the task that runs it.
pub(super) async fn keep(watched: Watched, index: Arc<Index>, connection: Arc<Connection>) {
    let mut pause = SOONEST;
    loop {
        let begun = Instant::now();
        let Some(problem) = follow(&watched, &index, &connection).await else { continue };
        // Not reset by a list that succeeds: an account that may list and not
        // watch would have everything listed twenty times a second.
        if begun.elapsed() > LATEST {
            pause = SOONEST;
        }
        if !matches!(index.standing(), Standing::Broken(_)) {
            let kind = &watched.resource.kind;
            tracing::warn!(
                kind,
                problem,
                "a watch broke off; until it stands again the API server is asked for each object"
            );
        }
        index.stand(Standing::Broken(problem));
        let mut generations = connection.generations();
        tokio::select! {
            () = sleep(pause) => {}
            // Other credentials are tried at once.
            _ = generations.changed() => {}
        }
        pause = (pause * 2).min(LATEST);
    }
}

/// Follows one client's watch until something makes it worth beginning anew;
/// answers what went wrong, if anything did.
async fn follow(watched: &Watched, index: &Index, connection: &Connection) -> Option<String> {
    let (client, generation) = match connection.numbered_client().await {
        Ok(numbered) => numbered,
        Err(problem) => return Some(problem),
    };
    let mut generations = connection.generations();
    let cluster = match connection.identity().await {
        Ok(cluster) => cluster,
        Err(problem) => return Some(problem),
    };
    let api = Api::<DynamicObject>::all_with(client, &watched.resource);
    let config = watcher::Config::default().labels(&watched.selector).page_size(PAGE);
    let events = watcher::watcher(api.clone(), config);
    pin_mut!(events);
    let mut listing = Some(HashMap::new());
    let verified = verify(watched, index, connection, &api);
    pin_mut!(verified);
    loop {
        let event = tokio::select! {
            event = next(&mut events, listing.is_some()) => event,
            _ = generations.wait_for(|now| *now != generation) => return None,
            problem = &mut verified => return problem,
        };
        match event {
            Ok(event) => take(index, &cluster, &mut listing, event),
            Err(error) => return Some(refused(watched, connection, error).await),
        }
    }
}

/// The next event. A list that is not answered is given up; a watch may be
/// silent for long.
async fn next(
    events: &mut (impl Stream<Item = watcher::Result<Event<DynamicObject>>> + Unpin),
    listing: bool,
) -> Result<Event<DynamicObject>, watcher::Error> {
    let event = async { Ok(events.next().await) };
    let event = if listing { trouble::within(event).await } else { event.await };
    match event {
        Ok(Some(event)) => event,
        Ok(None) => Err(watcher::Error::NoResourceVersion),
        Err(error) => Err(watcher::Error::InitialListFailed(error)),
    }
}

/// Takes an event into the index. What is listed is gathered until it is whole.
fn take(
    index: &Index,
    cluster: &str,
    listing: &mut Option<HashMap<Box<str>, Entry>>,
    event: Event<DynamicObject>,
) {
    match event {
        Event::Init => *listing = Some(HashMap::new()),
        Event::InitApply(object) => {
            if let Some(entry) = Entry::of(&object) {
                listing.get_or_insert_default().insert(place_of(&object), entry);
            }
        }
        Event::InitDone => {
            index.replace(listing.take().unwrap_or_default());
            index.stands_on(cluster);
            index.stand(Standing::Current);
        }
        Event::Apply(object) => {
            if let Some(entry) = Entry::of(&object) {
                index.seen(place_of(&object), entry);
            }
        }
        Event::Delete(object) => {
            let version = object.resource_version().and_then(|text| text.parse().ok());
            index.gone(&place_of(&object), version.unwrap_or_default());
        }
    }
}

fn place_of(object: &DynamicObject) -> Box<str> {
    place(object.metadata.namespace.as_deref().unwrap_or_default(), &object.name_any())
}

async fn refused(watched: &Watched, connection: &Connection, error: watcher::Error) -> String {
    let doing =
        if matches!(error, watcher::Error::InitialListFailed(_)) { "list" } else { "watch" };
    let what = format!("{doing} {}", watched.resource.plural);
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => {
            if trouble::is_unauthorized(&error) {
                connection.doubt().await;
            }
            trouble::describe(&what, &error)
        }
        // The server has forgotten where the watch was; a new one lists first.
        other => format!("could not {what}: {other}"),
    }
}

/// Holds a list against the watch, again and again, until one shows what the
/// watch should have shown: a watch can go silent without an error. Answers what
/// went wrong with a list, if anything did.
async fn verify(
    watched: &Watched,
    index: &Index,
    connection: &Connection,
    api: &Api<DynamicObject>,
) -> Option<String> {
    loop {
        sleep(watched.sweep).await;
        // Changed credentials make a new generation, which ends all of this.
        if let Err(problem) = connection.client().await {
            return Some(problem);
        }
        let (listed, version) = match list(watched, api).await {
            Ok(listed) => listed,
            Err(error) => {
                return Some(
                    refused(watched, connection, watcher::Error::InitialListFailed(error)).await,
                );
            }
        };
        sleep(IN_FLIGHT).await;
        if index.lags(&listed, version) {
            let kind = &watched.resource.kind;
            tracing::warn!(kind, "a watch has gone silent; it is begun anew");
            return None;
        }
    }
}

/// Places and versions of all objects, and the version of the list.
async fn list(
    watched: &Watched,
    api: &Api<DynamicObject>,
) -> Result<(HashMap<Box<str>, u64>, u64), kube::Error> {
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut listed = HashMap::new();
    let mut parameters = ListParams::default().labels(&watched.selector).limit(PAGE);
    loop {
        let page = trouble::within(api.list_metadata(&parameters)).await?;
        for object in &page.items {
            let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
            let version = number(object.resource_version());
            listed.insert(place(namespace, &object.name_any()), version);
        }
        parameters.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if parameters.continue_token.is_none() {
            return Ok((listed, number(page.metadata.resource_version)));
        }
    }
}
