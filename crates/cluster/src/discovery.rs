//! Asks an API server for its version, whether it serves a kind, which custom
//! kinds are installed, and what our own account may do there.

use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use kube::Api;
use kube::api::{ApiResource, PostParams};
use serde_json::json;

use crate::connection::Connection;
use crate::error::{self, Error, Reason};
use crate::objects::api_resource;

impl Connection {
    pub async fn server_version(&self) -> Result<String, Error> {
        let client = self.client().await?;
        let answer = error::within(client.apiserver_version()).await;
        Ok(self.answer("ask for its version", answer).await?.git_version)
    }

    /// Whether the server serves a kind in this version of its group. A request
    /// without an answer is an error, not `false`.
    pub async fn serves(&self, api_version: &str, plural: &str) -> Result<bool, Error> {
        let client = self.client().await?;
        let answer = error::within(client.list_api_group_resources(api_version)).await;
        let what = format!("ask whether it knows {plural} ({api_version})");
        match self.answer(&what, answer).await {
            Ok(listed) => Ok(listed.resources.iter().any(|resource| resource.name == plural)),
            Err(error) if *error.reason() == Reason::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The namespaced kinds that can be listed, of groups that are not built in,
    /// in the preferred version of each group.
    pub async fn custom_kinds(&self) -> Result<Vec<ApiResource>, Error> {
        let what = "ask which kinds there are";
        let client = self.client().await?;
        let groups = self.answer(what, error::within(client.list_api_groups()).await).await?;
        let mut kinds = Vec::new();
        for group in groups.groups {
            let built_in = !group.name.contains('.') || group.name.ends_with(".k8s.io");
            let version = group.preferred_version.as_ref().or(group.versions.first());
            let Some(version) = version.filter(|_| !built_in) else { continue };
            let version = &version.group_version;
            let answer = error::within(client.list_api_group_resources(version)).await;
            let listed = self.answer(what, answer).await?;
            let listable = listed.resources.into_iter().filter(|resource| {
                let list = resource.verbs.iter().any(|verb| verb == "list");
                resource.namespaced && list && !resource.name.contains('/')
            });
            kinds.extend(listable.map(|found| api_resource(version, &found.kind, &found.name)));
        }
        Ok(kinds)
    }

    /// Whether our account may use this verb on every object of a kind. Every
    /// account may ask for its own rights.
    pub async fn may(&self, verb: &str, group: &str, plural: &str) -> Result<bool, Error> {
        let what = "ask what our account may do";
        let question = json!({ "spec": { "resourceAttributes": {
            "group": group, "resource": plural, "verb": verb,
        } } });
        let question: SelfSubjectAccessReview = serde_json::from_value(question)
            .map_err(|error| Error::refused(format!("could not {what}: {error}")))?;
        let reviews = Api::<SelfSubjectAccessReview>::all(self.client().await?);
        let answer = error::within(reviews.create(&PostParams::default(), &question)).await;
        let review = self.answer(what, answer).await?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }
}
