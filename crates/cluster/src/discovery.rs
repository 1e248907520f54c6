//! Asks an API server for its version, which kinds it serves, and what our own
//! account may do there.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use kube::Api;
use kube::api::{ApiResource, PostParams};
use serde_json::json;

use crate::connection::Connection;
use crate::error::{self, Error, Reason};
use crate::objects::api_resource;

/// Parallel requests to one server.
const QUESTIONS: usize = 8;

/// Stands for every kind of a group.
const ANY: &str = "*";

/// One version of the core group, such as `v1`, or of another one.
enum GroupVersion {
    Core(String),
    Named(String),
}

/// A kind that can be listed.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedKind {
    pub resource: ApiResource,
    pub is_namespaced: bool,
    pub can_create: bool,
}

/// The kinds of a server.
#[derive(Debug)]
pub struct Kinds {
    pub found: Vec<ServedKind>,
    /// Versions of groups that could not be asked for their kinds, which may have objects
    /// anywhere.
    pub unknown: Vec<Error>,
}

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

    /// Every namespaced kind that can be listed and that `asked` wants, as in
    /// [`Self::kinds`].
    ///
    /// A group whose kinds cannot be asked for is an error: it may have objects
    /// anywhere.
    pub async fn namespaced_kinds(
        &self,
        asked: impl Fn(&str, &str) -> bool,
    ) -> Result<Vec<ApiResource>, Error> {
        let Kinds { found, unknown } = self.kinds(asked).await?;
        match unknown.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(found
                .into_iter()
                .filter(|kind| kind.is_namespaced)
                .map(|kind| kind.resource)
                .collect()),
        }
    }

    /// Every kind that can be listed and that `asked` wants, by group and plural, in
    /// one version each: the preferred one of its group, if that serves it. A kind may
    /// be served in another version only.
    pub async fn kinds(&self, asked: impl Fn(&str, &str) -> bool) -> Result<Kinds, Error> {
        let kinds = self.kinds_once(&asked).await?;
        let went = |error: &Error| *error.reason() == Reason::NotFound;
        match kinds.unknown.iter().any(went) {
            // A group that went away after it was listed is not listed the second time.
            true => self.kinds_once(&asked).await,
            false => Ok(kinds),
        }
    }

    async fn kinds_once(&self, asked: impl Fn(&str, &str) -> bool) -> Result<Kinds, Error> {
        let what = "ask which kinds there are";
        let client = self.client().await?;
        let core = self.answer(what, error::within(client.list_core_api_versions()).await).await?;
        let groups = self.answer(what, error::within(client.list_api_groups()).await).await?;
        let mut versions: Vec<_> = core.versions.into_iter().map(GroupVersion::Core).collect();
        for group in groups.groups {
            if !asked(&group.name, ANY) {
                continue;
            }
            let preferred = group.preferred_version.map(|version| version.group_version);
            let mut all: Vec<_> =
                group.versions.into_iter().map(|version| version.group_version).collect();
            all.sort_by_key(|version| Some(version) != preferred.as_ref());
            versions.extend(all.into_iter().map(GroupVersion::Named));
        }
        let questions = stream::iter(versions).map(|version| self.kinds_of(version));
        let answers = questions.buffered(QUESTIONS).collect::<Vec<_>>().await;
        let (mut kinds, mut unknown) = (BTreeMap::new(), Vec::new());
        for answer in answers {
            match answer {
                Ok(listed) => {
                    let of = |kind: &ServedKind| {
                        (kind.resource.group.clone(), kind.resource.plural.clone())
                    };
                    let listed = listed.into_iter().map(|kind| (of(&kind), kind));
                    for (name, kind) in listed.filter(|((group, plural), _)| asked(group, plural)) {
                        // The first one is of the preferred version.
                        kinds.entry(name).or_insert(kind);
                    }
                }
                Err(error) => unknown.push(error),
            }
        }
        Ok(Kinds { found: kinds.into_values().collect(), unknown })
    }

    /// The kind of this name, and whether its objects have a namespace. `None` if the
    /// server does not serve it.
    pub async fn kind_named(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<(ApiResource, bool)>, Error> {
        let client = self.client().await?;
        let answer = match api_version.contains('/') {
            true => error::within(client.list_api_group_resources(api_version)).await,
            false => error::within(client.list_core_api_resources(api_version)).await,
        };
        let what = format!("ask which kinds {api_version} has");
        let listed = match self.answer(&what, answer).await {
            Err(error) if *error.reason() == Reason::NotFound => return Ok(None),
            listed => listed?,
        };
        let named = |name: &str| !name.contains('/');
        let found = listed.resources.into_iter().find(|one| one.kind == kind && named(&one.name));
        Ok(found.map(|one| (api_resource(api_version, kind, &one.name), one.namespaced)))
    }

    /// The kinds of one version that can be listed.
    async fn kinds_of(&self, version: GroupVersion) -> Result<Vec<ServedKind>, Error> {
        let client = self.client().await?;
        let (name, answer) = match version {
            GroupVersion::Core(version) => {
                let answer = error::within(client.list_core_api_resources(&version)).await;
                (version, answer)
            }
            GroupVersion::Named(version) => {
                let answer = error::within(client.list_api_group_resources(&version)).await;
                (version, answer)
            }
        };
        let what = format!("ask which kinds {name} has");
        let listed = self.answer(&what, answer).await?;
        let kinds = listed.resources.into_iter().filter(|one| !one.name.contains('/'));
        let kinds = kinds.filter_map(|one| {
            let can = |verb: &str| one.verbs.iter().any(|known| known == verb);
            can("list").then(|| ServedKind {
                resource: api_resource(&name, &one.kind, &one.name),
                is_namespaced: one.namespaced,
                can_create: can("create"),
            })
        });
        Ok(kinds.collect())
    }

    /// Whether our account may use this verb on every object of a kind, in one
    /// namespace or in all. Every account may ask for its own rights.
    pub async fn may(
        &self,
        verb: &str,
        (group, plural): (&str, &str),
        namespace: Option<&str>,
    ) -> Result<bool, Error> {
        let what = "ask what our account may do";
        let question = json!({ "spec": { "resourceAttributes": {
            "group": group, "resource": plural, "verb": verb, "namespace": namespace,
        } } });
        let question: SelfSubjectAccessReview = serde_json::from_value(question)
            .map_err(|error| Error::refused(format!("could not {what}: {error}")))?;
        let reviews = Api::<SelfSubjectAccessReview>::all(self.client().await?);
        let answer = error::within(reviews.create(&PostParams::default(), &question)).await;
        let review = self.answer(what, answer).await?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }
}
