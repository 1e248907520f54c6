//! One probe of a server, for `slipway doctor`: every answer is a finding, and
//! so is no answer.

use std::time::Duration;

use reqwest::header::DATE;
use slipway_wire::operations::{Readiness, VERSION};

use crate::arguments::ClientOptions;
use crate::client::{Client, header};
use crate::error::Error;

/// A healthy server answers its probes within two seconds.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What a server answered.
#[derive(Debug)]
pub struct ServerProbe {
    /// The probes, or the error.
    pub readiness: Result<Readiness, String>,
    /// Its `Date` header, to the second.
    pub date: Option<String>,
    pub version: Option<String>,
    pub key: KeyProbe,
}

/// Whether the server accepts the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyProbe {
    NotGiven,
    Valid,
    Refused(String),
    /// The server gave no answer about it.
    Unknown,
}

/// Asks once. Never fails: a missing answer is part of the result.
pub async fn probe_server(options: &ClientOptions) -> ServerProbe {
    let mut probe = ServerProbe {
        readiness: Err(String::new()),
        date: None,
        version: None,
        key: KeyProbe::Unknown,
    };
    let authorities = options.ca_file.as_deref();
    let client = match Client::new(&options.server, options.key.clone(), authorities) {
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
    if options.key.is_none() {
        probe.key = KeyProbe::NotGiven;
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
    probe
}
