//! Finds the objects of a stack that the inventory does not have: somebody may have deleted
//! that. It lists every kind that the server serves by our labels, so it is done only
//! before success is reported on a marker, never when idle.
//!
//! *Guarantees:* an object that carries our marks is found, or its kind is named as one that
//! could not be listed. A kind that the account may not list cannot have objects of ours only
//! if the account may not create it either: in all namespaces, in that of the agent, and in
//! every other one if the account may list namespaces. *Caveat:* rights in single namespaces of
//! an account that may not list namespaces are not seen.

use std::collections::BTreeSet;

use slipway_cluster::{ApiResource, Connection, Error, Listing, ObjectMeta, api_resource};

use super::super::backend::{Fault, Found};
use super::super::inventory::Reference;
use super::backend::{ClusterBackend, at_once, fault};
use super::marks::of_stack;

/// Objects in one page of a list.
const PAGE: u32 = 500;

impl ClusterBackend {
    pub(super) async fn find_all(&mut self, stack: &str) -> Result<Found, Fault> {
        let search = Search {
            connection: &self.connection,
            selector: of_stack(self.owner()?, stack),
            namespaces: self.visible_namespaces().await?,
        };
        let kinds = self.connection.kinds(|_, _| true).await.map_err(fault)?;
        let made = kinds.found.iter().filter(|kind| kind.can_create);
        let searched = made.map(|kind| search.kind(&kind.resource, kind.is_namespaced));
        let searched = at_once(searched.collect()).await;
        let (mut found, mut known) = (Found::default(), BTreeSet::new());
        found.unlisted.extend(kinds.unknown.into_iter().map(Error::into_message));
        for (kind, listed) in kinds.found.iter().filter(|kind| kind.can_create).zip(searched) {
            found.unlisted.extend(listed.unlisted);
            // The same object may be served by two groups.
            let new = listed.objects.into_iter().filter(|live| known.insert(live.uid.clone()));
            found.references.extend(new.map(|live| reference(&kind.resource, live)));
        }
        // Whatever a server did not answer is named above, unless none of it answers.
        self.require_same_cluster().await?;
        Ok(found)
    }

    /// Where the account may have rights of its own: the agent's namespace, and all others
    /// that it can see.
    async fn visible_namespaces(&self) -> Result<BTreeSet<String>, Fault> {
        let resource = api_resource("v1", "Namespace", "namespaces");
        let mut names = BTreeSet::from([self.namespace.clone()]);
        match list(&self.connection, Listing::all(&resource)).await {
            Ok(found) => names.extend(found.into_iter().filter_map(|live| live.name)),
            Err(error) if error.is_forbidden() => {}
            Err(error) => return Err(fault(error)),
        }
        Ok(names)
    }
}

struct Search<'a> {
    connection: &'a Connection,
    selector: String,
    namespaces: BTreeSet<String>,
}

/// What is known of one kind.
#[derive(Default)]
struct Listed {
    objects: Vec<ObjectMeta>,
    /// Why it is not known whether there are more.
    unlisted: Vec<String>,
}

impl Search<'_> {
    async fn kind(&self, resource: &ApiResource, is_namespaced: bool) -> Listed {
        let listing = Listing { labels: Some(&self.selector), ..Listing::all(resource) };
        let mut listed = Listed::default();
        let refused = match list(self.connection, listing).await {
            Ok(objects) => return Listed { objects, ..listed },
            Err(error) => error,
        };
        if !refused.is_forbidden() || self.may_create(resource, None, &mut listed).await {
            listed.unlisted.push(refused.into_message());
            return listed;
        }
        for namespace in self.namespaces.iter().filter(|_| is_namespaced) {
            if !self.may_create(resource, Some(namespace), &mut listed).await {
                continue;
            }
            match list(self.connection, Listing { namespace: Some(namespace), ..listing }).await {
                Ok(objects) => listed.objects.extend(objects),
                Err(error) => listed.unlisted.push(error.into_message()),
            }
        }
        listed
    }

    /// Whether the account may make objects of a kind. If that cannot be asked, it may.
    async fn may_create(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        listed: &mut Listed,
    ) -> bool {
        let kind = (&*resource.group, &*resource.plural);
        match self.connection.may("create", kind, namespace).await {
            Ok(may) => may,
            Err(error) => {
                listed.unlisted.push(error.into_message());
                true
            }
        }
    }
}

async fn list(connection: &Connection, listing: Listing<'_>) -> Result<Vec<ObjectMeta>, Error> {
    let (mut found, mut token) = (Vec::new(), None);
    loop {
        let page = connection.list_metadata_page(listing, PAGE, token).await?;
        found.extend(page.items);
        token = page.next;
        if token.is_none() {
            return Ok(found);
        }
    }
}

/// It was there, so it counts as applied: a right that is missing now is a failure.
fn reference(resource: &ApiResource, live: ObjectMeta) -> Reference {
    Reference {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
        namespace: live.namespace,
        name: live.name.unwrap_or_default(),
        digest: Some("found".to_owned()),
        is_stale: false,
    }
}
