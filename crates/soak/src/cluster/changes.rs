//! Watches the kinds of the ledger, on a connection that has no faults. A watch
//! goes on where the one before it ended, so no change is missed; if one is, the
//! soak says so.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::ApiResource;

use super::blueprint;
use super::ledger::{Change, Kind, What};

/// A change as it arrived, or why there will be no more of them.
#[derive(Debug)]
pub(super) enum Arrival {
    Change(Instant, Change),
    Lost(String),
}

const PAUSE: Duration = Duration::from_millis(100);

const CLAIM: &str = "slipway.dev/claim-token";

pub(super) fn resource(kind: Kind) -> ApiResource {
    let (group, version, name, plural) = match kind {
        Kind::Namespace => ("", "v1", "Namespace", "namespaces"),
        Kind::ExternalSecret => ("external-secrets.io", "v1", "ExternalSecret", "externalsecrets"),
        Kind::ProviderConfig => {
            (blueprint::PROVIDER_GROUP, "v1beta1", "ProviderConfig", "providerconfigs")
        }
        Kind::Composite => (blueprint::GROUP, "v1", blueprint::KIND, blueprint::PLURAL),
    };
    let api_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: name.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Sends every change of a kind until the receiver is gone.
pub(super) async fn follow(client: Client, kind: Kind, to: Sender<Arrival>) {
    if let Err(error) = follow_on(client, kind, &to).await {
        // Nobody to tell if the soak has ended.
        let _ended = to.send(Arrival::Lost(format!("the watch of {kind:?}: {error}")));
    }
}

async fn follow_on(client: Client, kind: Kind, to: &Sender<Arrival>) -> kube::Result<()> {
    let api = Api::<DynamicObject>::all_with(client, &resource(kind));
    let (mut version, mut went_on) = (None, false);
    loop {
        let from = match version.take() {
            Some(version) => version,
            None => list(&api, kind, to).await,
        };
        match watch(&api, kind, &from, &mut version, to).await {
            Ok(Receiver::Gone) => return Ok(()),
            // The cache of a kind that was just installed begins after the list,
            // which was empty: nothing is missed by another one.
            Err(kube::Error::Api(status))
                if status.code == 410 && !went_on && version.is_none() =>
            {
                continue;
            }
            Err(error @ kube::Error::Api(_)) => return Err(error),
            // A watch that ended, or a connection that broke, is begun again.
            Ok(Receiver::There) | Err(_) => {}
        }
        went_on = true;
        version = Some(version.unwrap_or(from));
        tokio::time::sleep(PAUSE).await;
    }
}

/// Sends what is there, and returns the version of the list. The kind is served
/// once the stand-in or the control plane installed it.
async fn list(api: &Api<DynamicObject>, kind: Kind, to: &Sender<Arrival>) -> String {
    loop {
        if let Ok(listed) = api.list(&ListParams::default()).await {
            for object in &listed.items {
                send(kind, object, false, to);
            }
            return listed.metadata.resource_version.unwrap_or_default();
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Sends changes until the watch ends; `version` becomes that of the last one.
async fn watch(
    api: &Api<DynamicObject>,
    kind: Kind,
    from: &str,
    version: &mut Option<String>,
    to: &Sender<Arrival>,
) -> kube::Result<Receiver> {
    let mut events = api.watch(&WatchParams::default(), from).await?.boxed();
    while let Some(event) = events.try_next().await? {
        let (object, gone) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(bookmark) => {
                *version = Some(bookmark.metadata.resource_version);
                continue;
            }
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        };
        version.clone_from(&object.metadata.resource_version);
        if !send(kind, &object, gone, to) {
            return Ok(Receiver::Gone);
        }
    }
    Ok(Receiver::There)
}

/// Whether somebody still wants the changes.
enum Receiver {
    There,
    Gone,
}

/// Whether somebody receives it.
fn send(kind: Kind, object: &DynamicObject, gone: bool, to: &Sender<Arrival>) -> bool {
    let metadata = &object.metadata;
    let name = metadata.name.clone().unwrap_or_default();
    let annotations = metadata.annotations.as_ref();
    let claim = annotations.and_then(|all| all.get(CLAIM)).and_then(|text| text.parse().ok());
    let terminating = metadata.deletion_timestamp.is_some();
    let change = Change {
        version: metadata
            .resource_version
            .as_deref()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0),
        kind,
        namespace: metadata.namespace.clone().unwrap_or_else(|| name.clone()),
        name,
        uid: metadata.uid.clone().unwrap_or_default(),
        what: if gone { What::Gone } else { What::Written { terminating, claim } },
    };
    to.send(Arrival::Change(Instant::now(), change)).is_ok()
}
