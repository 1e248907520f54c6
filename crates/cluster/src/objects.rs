//! Reads objects of any kind. Each request has a time limit, and each error says
//! what was tried. `None` means that a server that knows the kind has no such
//! object.

use std::fmt;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectMeta, TypeMeta};

use crate::connection::Connection;
use crate::error::{self, Error};

/// Objects in one page of a complete list.
pub(crate) const PAGE: u32 = 500;

/// The address of one object on a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectRef {
    pub resource: ApiResource,
    /// `None` for an object of cluster scope.
    pub namespace: Option<String>,
    pub name: String,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.resource.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// A kind of objects. `api_version` is `v1` or `group/v1`.
pub fn api_resource(api_version: &str, kind: &str, plural: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Which objects a list contains.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    pub resource: &'a ApiResource,
    /// `None` for all namespaces.
    pub namespace: Option<&'a str>,
    pub labels: Option<&'a str>,
    /// The object of this name only.
    pub name: Option<&'a str>,
}

impl<'a> Listing<'a> {
    /// Every object of a kind.
    pub const fn all(resource: &'a ApiResource) -> Self {
        Self { resource, namespace: None, labels: None, name: None }
    }

    fn what(&self) -> String {
        match &*self.resource.group {
            "" => format!("list {}", self.resource.plural),
            group => format!("list {}.{group}", self.resource.plural),
        }
    }

    fn parameters(&self, limit: u32, continue_token: Option<String>) -> ListParams {
        let mut parameters = ListParams::default().limit(limit);
        parameters.label_selector = self.labels.map(str::to_owned);
        parameters.field_selector = self.name.map(|name| format!("metadata.name={name}"));
        parameters.continue_token = continue_token;
        parameters
    }
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The server's token for the next page; `None` after the last one.
    pub next: Option<String>,
    /// The version that the list was made at.
    pub resource_version: Option<String>,
}

impl Connection {
    async fn api(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
    ) -> Result<Api<DynamicObject>, Error> {
        let client = self.client().await?;
        Ok(match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        })
    }

    pub(crate) async fn api_of(&self, object: &ObjectRef) -> Result<Api<DynamicObject>, Error> {
        self.api(&object.resource, object.namespace.as_deref()).await
    }

    /// `None` if the answer is that the object is gone.
    pub(crate) async fn unless_gone<T>(
        &self,
        verb: &str,
        object: &ObjectRef,
        answer: Result<T, kube::Error>,
    ) -> Result<Option<T>, Error> {
        match answer {
            Err(error) if error::is_gone(&error, &object.resource.plural, &object.name) => Ok(None),
            answer => self.answer(&format!("{verb} {object}"), answer).await.map(Some),
        }
    }

    /// The object; `None` if a server that knows the kind has no such object.
    /// The caller has to ask which server that was, and whether the kind will
    /// stay.
    pub async fn get(&self, object: &ObjectRef) -> Result<Option<DynamicObject>, Error> {
        let api = self.api_of(object).await?;
        let answer = error::within(api.get(&object.name)).await;
        self.unless_gone("read", object, answer).await
    }

    /// The metadata of an object, as in [`Self::get`].
    pub async fn get_metadata(&self, object: &ObjectRef) -> Result<Option<ObjectMeta>, Error> {
        let api = self.api_of(object).await?;
        let answer = error::within(api.get_metadata(&object.name)).await;
        Ok(self.unless_gone("read", object, answer).await?.map(|found| found.metadata))
    }

    /// One page of a list.
    pub async fn list_page(
        &self,
        listing: Listing<'_>,
        limit: u32,
        continue_token: Option<String>,
    ) -> Result<Page<DynamicObject>, Error> {
        let api = self.api(listing.resource, listing.namespace).await?;
        let answer = error::within(api.list(&listing.parameters(limit, continue_token))).await;
        let mut listed = self.answer(&listing.what(), answer).await?;
        for object in &mut listed.items {
            // The items of a list may come without apiVersion and kind.
            object.types.get_or_insert_with(|| TypeMeta {
                api_version: listing.resource.api_version.clone(),
                kind: listing.resource.kind.clone(),
            });
        }
        Ok(page(listed.items, listed.metadata))
    }

    /// The same with the metadata of the objects only.
    pub async fn list_metadata_page(
        &self,
        listing: Listing<'_>,
        limit: u32,
        continue_token: Option<String>,
    ) -> Result<Page<ObjectMeta>, Error> {
        let api = self.api(listing.resource, listing.namespace).await?;
        let parameters = listing.parameters(limit, continue_token);
        let answer = error::within(api.list_metadata(&parameters)).await;
        let listed = self.answer(&listing.what(), answer).await?;
        let items = listed.items.into_iter().map(|object| object.metadata).collect();
        Ok(page(items, listed.metadata))
    }

    /// Every object of a list, page by page.
    pub async fn list(&self, listing: Listing<'_>) -> Result<Vec<DynamicObject>, Error> {
        let (mut found, mut token) = (Vec::new(), None);
        loop {
            let page = self.list_page(listing, PAGE, token).await?;
            found.extend(page.items);
            token = page.next;
            if token.is_none() {
                return Ok(found);
            }
        }
    }
}

fn page<T>(items: Vec<T>, metadata: kube::core::ListMeta) -> Page<T> {
    Page {
        items,
        next: metadata.continue_.filter(|token| !token.is_empty()),
        resource_version: metadata.resource_version,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_what_comes_before_the_slash() {
        let core = api_resource("v1", "Namespace", "namespaces");
        assert_eq!((&*core.group, &*core.version, &*core.api_version), ("", "v1", "v1"));
        let custom = api_resource("a.example.org/v2", "Thing", "things");
        assert_eq!((&*custom.group, &*custom.version), ("a.example.org", "v2"));
        assert_eq!(custom.api_version, "a.example.org/v2");
    }

    #[test]
    fn an_object_is_shown_by_kind_namespace_and_name() {
        let mut object = ObjectRef {
            resource: api_resource("v1", "ConfigMap", "configmaps"),
            namespace: Some("n".to_owned()),
            name: "a".to_owned(),
        };
        assert_eq!(object.to_string(), "ConfigMap n/a");
        object.namespace = None;
        assert_eq!(object.to_string(), "ConfigMap a");
    }
}
