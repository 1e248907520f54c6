//! The demo on Hetzner Cloud, or on what plays its API: prepares a project for it, and reads
//! at the provider itself what is there, with the same token as the control plane.

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use slipway_core::secret::Secret;
use slipway_wire::catalog::{CreateProject, Credential, Project};
use slipway_wire::files::{AppliedDocument, Apply, SubmittedDocument};
use slipway_wire::placement::{AssignCluster, Cluster, ClusterAssignment, CreateCluster};

use crate::client::{Client, Listing};
use crate::demo::{PROVIDER_TOKEN, Screen};
use crate::error::Error;

/// The cloud, the credential and the blueprint that the demo applies.
const CATALOG: &str = include_str!("../../../../../deploy/samples/hetzner.yaml");
const BLUEPRINT: &str = "hetzner-server";
const CREDENTIAL: &str = "hetzner";
const LOCATION: &str = "nbg1";
/// Each server of a control plane of ours is named like this.
const PREFIX: &str = "pr-";
const DEADLINE: Duration = Duration::from_secs(10);

/// Shown if the demo did not finish: no control plane is left to clean up.
pub(super) const LEFT: &str = "what it made at the provider, if anything, is still there: servers \
    whose names begin with pr-, and the placement group slipway-identity";

/// A project of the provider.
#[derive(Debug)]
pub(super) struct Provider {
    http: reqwest::Client,
    url: String,
    token: Secret,
}

/// A server as the provider lists it.
#[derive(Debug, Deserialize)]
pub(super) struct Machine {
    pub(super) name: String,
    protection: Protection,
    labels: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Protection {
    delete: bool,
}

impl Machine {
    pub(super) const fn is_protected(&self) -> bool {
        self.protection.delete
    }

    /// The id of the resource that it was made for.
    pub(super) fn resource(&self) -> Option<&str> {
        self.labels.get("slipway.dev/resource").map(String::as_str)
    }
}

#[derive(Deserialize)]
struct Machines {
    servers: Vec<Machine>,
}

#[derive(Deserialize)]
struct PlacementGroups {
    placement_groups: Vec<PlacementGroup>,
}

#[derive(Deserialize)]
struct PlacementGroup {
    id: u64,
    name: String,
}

impl Provider {
    pub(super) fn new(url: &str, token_file: &Path) -> Result<Self, Error> {
        let token = std::fs::read_to_string(token_file).map_err(|error| {
            Error::Usage(format!("cannot read --token-file {}: {error}", token_file.display()))
        })?;
        // An error means that a provider of cryptography is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(DEADLINE).build();
        let http = http.map_err(|error| Error::Demo(format!("no HTTP client: {error}")))?;
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { http, url, token: Secret::new(token.trim()) })
    }

    pub(super) const fn token(&self) -> &Secret {
        &self.token
    }

    /// Registers the provider's project as a cluster, and makes a project of ours that uses it.
    pub(super) async fn prepare(
        &self,
        client: &Client,
        project: &str,
        screen: &mut Screen<'_>,
    ) -> Result<(), Error> {
        screen.heading("A project of the provider, and what a declaration needs");
        self.check_empty().await?;
        let documents = serde_yaml_ng::Deserializer::from_str(CATALOG).map(|document| {
            let document = Value::deserialize(document)
                .map_err(|error| Error::Demo(format!("the catalog is no YAML: {error}")))?;
            let origin = "hetzner.yaml".to_owned();
            Ok(SubmittedDocument { origin, document, plan: None })
        });
        let documents = documents.collect::<Result<Vec<_>, Error>>()?;
        let source = "demo".to_owned();
        let body = Apply { source, documents, dry_run: false, force: false };
        let applied: Vec<AppliedDocument> = client.post(&["apply"], &body).await?;
        if let Some(refusal) = applied.iter().find_map(|one| one.refusal.as_ref()) {
            return Err(Error::Demo(format!("the catalog was refused: {}", refusal.message)));
        }
        screen.now("catalog", &format!("blueprint {BLUEPRINT} and what it needs"));
        let wanted = CreateProject { name: project.to_owned(), ..CreateProject::default() };
        let _: Project = client.post(&["projects"], &wanted).await?;
        let credentials = client.list::<Credential>(&["credentials"], Listing::default()).await?;
        let credential = credentials.items.into_iter().find(|one| one.name == CREDENTIAL);
        let credential =
            credential.ok_or_else(|| Error::Demo(format!("no credential `{CREDENTIAL}`")))?;
        let path = ["projects", project, "credentials", &credential.id];
        client.silent(Method::PUT, &path).await?;
        let cluster = CreateCluster {
            name: project.to_owned(),
            engine: "hetzner".to_owned(),
            access: Some(format!("hetzner/{PROVIDER_TOKEN}@{}", self.url)),
            ..CreateCluster::default()
        };
        let _: Cluster = client.post(&["clusters"], &cluster).await?;
        let there = AssignCluster { cluster: Some(project.to_owned()), region: None };
        let _: ClusterAssignment = client.put(&["projects", project, "cluster"], &there).await?;
        screen.now("cluster", &format!("the project of the provider at {}", self.url));
        Ok(())
    }

    /// The groups of the sample, made of servers of the provider.
    pub(super) fn redeclare(&self, document: &mut Value) {
        let groups = document["spec"]["groups"].as_array_mut();
        for group in groups.into_iter().flatten() {
            group["blueprint"] = json!(BLUEPRINT);
            group["parameters"] = json!({ "location": LOCATION });
        }
    }

    /// A project that another control plane uses is not for a demo.
    async fn check_empty(&self) -> Result<(), Error> {
        let servers = self.servers().await?;
        match servers.first() {
            None => Ok(()),
            Some(one) => Err(Error::Demo(format!(
                "the project of the provider has servers already, such as {}; use an empty one",
                one.name
            ))),
        }
    }

    /// Servers that a control plane of ours made. The demo has fewer than a page.
    pub(super) async fn servers(&self) -> Result<Vec<Machine>, Error> {
        let found: Machines = self.get("servers?per_page=50").await?;
        Ok(found.servers.into_iter().filter(|one| one.name.starts_with(PREFIX)).collect())
    }

    /// Removes what says that the project belongs to this run's control plane, so that another
    /// one can use it.
    pub(super) async fn release(&self) -> Result<(), Error> {
        let found: PlacementGroups = self.get("placement_groups?per_page=50").await?;
        for group in found.placement_groups.iter().filter(|one| one.name == "slipway-identity") {
            self.send(Method::DELETE, &format!("placement_groups/{}", group.id)).await?;
        }
        Ok(())
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let answer = self.send(Method::GET, path).await?;
        answer.json().await.map_err(|error| self.failed(path, &error))
    }

    async fn send(&self, method: Method, path: &str) -> Result<reqwest::Response, Error> {
        let request = self.http.request(method, format!("{}/{path}", self.url));
        let answer = request.bearer_auth(self.token.expose()).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status);
        answer.map_err(|error| self.failed(path, &error))
    }

    fn failed(&self, path: &str, error: &reqwest::Error) -> Error {
        let error = error.status().map_or_else(
            || "no answer that can be understood".to_owned(),
            |status| format!("it answered {status}"),
        );
        Error::Demo(format!("cannot read {path} at {}: {error}", self.url))
    }
}
