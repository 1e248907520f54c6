//! Checks the clusters of engine crossplane and the projects of engine hetzner: whether this
//! machine has the kubeconfig or token that a row names, and whether the API behind it answers.

use std::time::Duration;

use slipway_cli::ServerProbe;
use slipway_core::placement::cluster::{ClusterAccess, how_to_serve};
use slipway_substrate::crossplane::Access;
use slipway_substrate::hetzner::{
    DEFAULT_ENDPOINT, Endpoint, ProjectAccess, TokenFile, project_uid,
};

use super::finding::{Area, Finding};
use crate::config::Config;

/// A healthy API server answers in milliseconds.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn inspect(seen: &ServerProbe, config: &Config) -> Vec<Finding> {
    let mut area = Area::new("clusters");
    if let Some(folder) = &config.kubeconfig_dir
        && !folder.is_dir()
    {
        area.problem(
            "kubeconfig_dir",
            format!("{} is no folder that can be read", folder.display()),
            "make it, or mount it; without it no cluster with a kubeconfig is served",
        );
    }
    for cluster in &seen.clusters {
        // A control plane of another machine may have what this one lacks.
        if let Some(found) = &cluster.verification
            && let Some(problem) = &found.problem
        {
            area.problem(
                "verified",
                format!("{}: {problem}", cluster.name),
                format!("slipway explain cluster {}", cluster.name),
            );
        }
        let access = cluster.access.as_deref().map(ClusterAccess::parse);
        let access = match access {
            Some(Ok(access @ ClusterAccess::Hetzner { .. })) => {
                let uid = cluster.substrate_uid.as_deref();
                project(&mut area, &cluster.name, uid, &access, config).await;
                continue;
            }
            access => access,
        };
        let Some(Ok(ClusterAccess::Kubeconfig(name))) = access else { continue };
        let remedy = how_to_serve(Some(&ClusterAccess::Kubeconfig(name.clone())));
        let Some(folder) = &config.kubeconfig_dir else {
            let text = format!("{}: this control plane has no kubeconfig_dir", cluster.name);
            area.warning("kubeconfig", text, remedy);
            continue;
        };
        let file = folder.join(name.as_str());
        if !file.is_file() {
            let text = format!("{}: there is no file {}", cluster.name, file.display());
            area.problem("kubeconfig", text, remedy);
            continue;
        }
        let connection =
            slipway_cluster::Connection::new(Access::Kubeconfig(file.clone()), &cluster.name);
        let answer = tokio::time::timeout(TIMEOUT, connection.identity()).await;
        match answer
            .map_err(|_| "it did not answer in time".to_owned())
            .and_then(|found| found.map_err(|error| error.to_string()))
        {
            Ok(uid) if cluster.substrate_uid.as_ref().is_some_and(|known| *known != uid) => area
                .problem(
                    "kubeconfig",
                    format!(
                        "{}: {} leads to another cluster than the registered one",
                        cluster.name,
                        file.display()
                    ),
                    "put the kubeconfig of the registered cluster there",
                ),
            Ok(_) => {
                area.ok("kubeconfig", format!("{}: {} connects", cluster.name, file.display()));
            }
            Err(why) => area.problem(
                "kubeconfig",
                format!("{}: {}: {why}", cluster.name, file.display()),
                "repair the file or the way to the API server",
            ),
        }
    }
    area.into_findings()
}

/// Whether the token is there, and leads to the project that was registered.
async fn project(
    area: &mut Area,
    cluster: &str,
    registered: Option<&str>,
    access: &ClusterAccess,
    config: &Config,
) {
    let ClusterAccess::Hetzner { token, endpoint } = access else { return };
    let remedy = how_to_serve(Some(access));
    let Some(folder) = &config.provider_token_dir else {
        let text = format!("{cluster}: this control plane has no provider_token_dir");
        area.warning("provider_token", text, remedy);
        return;
    };
    let file = folder.join(token.as_str());
    let shown = file.display();
    if !file.is_file() {
        area.problem("provider_token", format!("{cluster}: there is no file {shown}"), remedy);
        return;
    }
    let endpoint = endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT);
    let answer = async {
        let endpoint = Endpoint::parse(endpoint).map_err(|error| error.to_string())?;
        let access = ProjectAccess { endpoint, token: TokenFile::new(&file) };
        let asked = tokio::time::timeout(TIMEOUT, project_uid(access)).await;
        asked.map_err(|_| "it did not answer in time".to_owned())?.map_err(|e| e.to_string())
    };
    match (answer.await, registered) {
        (Ok(found), Some(known)) if found.as_deref() != Some(known) => area.problem(
            "provider_token",
            format!("{cluster}: {shown} leads to another project than the registered one"),
            "put a token of the registered project there",
        ),
        (Ok(_), _) => area.ok("provider_token", format!("{cluster}: {shown} is accepted")),
        (Err(why), _) => area.problem(
            "provider_token",
            format!("{cluster}: {shown}: {why}"),
            "put a token there that may read and write, or repair the way to the provider",
        ),
    }
}
