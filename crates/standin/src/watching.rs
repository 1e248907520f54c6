//! One watch per kind, and one task per object of it.
//!
//! A task receives the newest state of its object, whatever was skipped in
//! between; its channel closes when the object is gone. Tasks belong to the
//! future of the watch: dropping that ends all of them.

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
/// Later states; closes when the object is gone.
pub(crate) type Updates = watch::Receiver<Object>;

/// The pause before a broken watch is retried. It is constant: the usual
/// backoff grows to half a minute, which a test of a restarted server would
/// have to wait; and a test cluster has no other clients to protect.
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

/// Runs `live` for each object of a kind, while this future is polled.
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
                // Objects that were deleted while no watch ran.
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
