//! One probe of a server, for `slipway doctor`: every answer is a finding, and
//! so is no answer.

use std::time::Duration;

use reqwest::header::DATE;
use slipway_wire::operations::{Control, Readiness, VERSION};
use slipway_wire::placement::Cluster;

use crate::arguments::ClientOptions;
use crate::client::{Client, Listing, header};
use crate::error::Error;

/// A healthy server answers its probes within two seconds.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What a server answered.
#[derive(Debug)]
pub struct ServerProbe {
    pub server: String,
    /// The probes, or the error.
    pub readiness: Result<Readiness, String>,
    /// Its `Date` header, to the second.
    pub date: Option<String>,
    pub version: Option<String>,
    pub key: KeyProbe,
    /// The mode, for a valid key.
    pub control: Option<Control>,
    /// The clusters that are registered, for a valid key.
    pub clusters: Vec<Cluster>,
}

/// Whether the server accepts the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyProbe {
    NotGiven,
    Valid,
    /// By the server, or the file of the key or of the contexts cannot be read.
    Refused(String),
    /// The server gave no answer about it.
    Unknown,
}

/// Asks once. Never fails: a missing answer is part of the result.
pub async fn probe_server(options: &ClientOptions) -> ServerProbe {
    let mut probe = ServerProbe {
        server: String::new(),
        readiness: Err(String::new()),
        date: None,
        version: None,
        key: KeyProbe::Unknown,
        control: None,
        clusters: Vec::new(),
    };
    let (connection, unreadable) = match options.connection() {
        Ok(connection) => (connection, None),
        Err(error) => (options.without_key(), Some(error.to_string())),
    };
    probe.server.clone_from(&connection.server);
    let (key, authorities) = (connection.key, connection.ca_file.as_deref());
    let is_given = key.is_some();
    let client = match Client::new(&connection.server, key, authorities) {
        Ok(client) => client,
        Err(error) => {
            probe.readiness = Err(error.to_string());
            return probe;
        }
    };
    match tokio::time::timeout(TIMEOUT, client.readiness()).await {
        Ok(Ok((readiness, headers))) => {
            probe.readiness = Ok(readiness);
            probe.date = header(&headers, DATE.as_str()).map(str::to_owned);
        }
        Ok(Err(error)) => probe.readiness = Err(error.to_string()),
        Err(_) => probe.readiness = Err(client.silent_for(TIMEOUT).to_string()),
    }
    if probe.readiness.is_err() {
        return probe;
    }
    if !is_given {
        probe.key = unreadable.map_or(KeyProbe::NotGiven, KeyProbe::Refused);
        return probe;
    }
    match tokio::time::timeout(TIMEOUT, client.headers(&["control"])).await {
        Ok(Ok(headers)) => {
            probe.key = KeyProbe::Valid;
            probe.version = header(&headers, VERSION).map(str::to_owned);
        }
        Ok(Err(Error::Problem(problem))) if [401, 403].contains(&problem.status) => {
            probe.key = KeyProbe::Refused(problem.message);
        }
        Ok(Err(_)) | Err(_) => {}
    }
    if probe.key == KeyProbe::Valid {
        // What cannot be read here is missing from the findings; the checks above say why.
        let control = tokio::time::timeout(TIMEOUT, client.get(&["control"])).await;
        probe.control = control.ok().and_then(Result::ok);
        let clusters = client.list::<Cluster>(&["clusters"], Listing::default());
        let clusters = tokio::time::timeout(TIMEOUT, clusters).await;
        probe.clusters =
            clusters.ok().and_then(Result::ok).map(|found| found.items).unwrap_or_default();
    }
    probe
}
