//! One watch per kind, and one task per object of it.
//!
//! A task gets the newest state of its object, however many were skipped, and
//! is told of the object's end by the end of its channel. Tasks end with the
//! future of the watch: dropping that ends everything.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::context::Context;

/// The newest state of one object.
pub(crate) type Object = Arc<DynamicObject>;
/// Every later one; ends with the object.
pub(crate) type Updates = watch::Receiver<Object>;

/// The pause before a watch that broke is tried again. Always the same: the
/// usual one grows to half a minute, for which a test of a server that comes
/// back would wait; and a cluster of a test has no other clients to spare it for.
const PAUSE: Duration = Duration::from_millis(250);

struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(PAUSE)
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}

/// Runs `live` for each object of a kind, as long as this is polled.
pub(crate) async fn each<F, L>(context: &Context, resource: &ApiResource, live: F)
where
    F: Fn(Updates) -> L,
    L: Future<Output = ()> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    let mut objects: HashMap<String, watch::Sender<Object>> = HashMap::new();
    let mut listed: Option<HashSet<String>> = None;
    let events = watcher(context.api(resource, None), watcher::Config::default());
    let mut events = std::pin::pin!(events.backoff(Steady));
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, kind = resource.kind, "a task ended badly");
                }
                continue;
            }
        };
        match event {
            Some(Ok(Event::Apply(object) | Event::InitApply(object))) => {
                let uid = object.metadata.uid.clone().unwrap_or_default();
                if let Some(listed) = &mut listed {
                    listed.insert(uid.clone());
                }
                let object = Arc::new(object);
                match objects.get(&uid) {
                    Some(sender) => {
                        sender.send_replace(object);
                    }
                    None => {
                        let (sender, updates) = watch::channel(object);
                        objects.insert(uid, sender);
                        tasks.spawn(live(updates));
                    }
                }
            }
            Some(Ok(Event::Delete(object))) => {
                objects.remove(&object.metadata.uid.unwrap_or_default());
            }
            Some(Ok(Event::Init)) => listed = Some(HashSet::new()),
            Some(Ok(Event::InitDone)) => {
                // What went while nobody watched.
                if let Some(listed) = listed.take() {
                    objects.retain(|uid, _| listed.contains(uid));
                }
            }
            Some(Err(error)) => {
                tracing::debug!(%error, kind = resource.kind, "the watch is started again");
            }
            // A watcher never ends by itself.
            None => return,
        }
    }
}
