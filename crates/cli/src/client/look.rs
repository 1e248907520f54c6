//! One look at a server, for `slipway doctor`: every answer is a finding, also
//! none at all.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap};
use slipway_wire::api::{Readiness, VERSION};

use super::Client;
use crate::arguments::ClientOptions;
use crate::error::Error;

/// A server that is well answers its probes within two seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was seen of a server.
#[derive(Debug)]
pub struct ServerLook {
    /// The probes, or why there are none.
    pub readiness: Result<Readiness, String>,
    /// Its `Date`, to the second.
    pub date: Option<String>,
    pub version: Option<String>,
    pub key: KeyLook,
}

/// What the server makes of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyLook {
    NotGiven,
    Valid,
    Refused(String),
    /// The server did not say.
    Unknown,
}

/// Looks once. Never fails: what cannot be seen is part of the answer.
pub async fn look_at_server(options: &ClientOptions) -> ServerLook {
    let mut look = ServerLook {
        readiness: Err(String::new()),
        date: None,
        version: None,
        key: KeyLook::Unknown,
    };
    let client = match Client::new(&options.server, options.key.clone()) {
        Ok(client) => client,
        Err(error) => {
            look.readiness = Err(error.to_string());
            return look;
        }
    };
    match tokio::time::timeout(PATIENCE, client.ready()).await {
        Ok(Ok((readiness, headers))) => {
            look.readiness = Ok(readiness);
            look.date = text(&headers, DATE.as_str());
        }
        Ok(Err(error)) => look.readiness = Err(error.to_string()),
        Err(_) => look.readiness = Err(client.silent_for(PATIENCE).to_string()),
    }
    if look.readiness.is_err() {
        return look;
    }
    if options.key.is_none() {
        look.key = KeyLook::NotGiven;
        return look;
    }
    match tokio::time::timeout(PATIENCE, client.control_headers()).await {
        Ok(Ok(headers)) => {
            look.key = KeyLook::Valid;
            look.version = text(&headers, VERSION);
        }
        Ok(Err(Error::Problem(problem))) if [401, 403].contains(&problem.status) => {
            look.key = KeyLook::Refused(problem.message);
        }
        Ok(Err(_)) | Err(_) => {}
    }
    look
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

impl Client {
    /// The probes, whatever they say. Asked without the key, as by anybody.
    async fn ready(&self) -> Result<(Readiness, HeaderMap), Error> {
        let mut url = self.server.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("readyz");
        }
        let response = self.http.get(url).send().await.map_err(|error| self.unreachable(error))?;
        let headers = response.headers().clone();
        Ok((self.read(response).await?, headers))
    }

    async fn control_headers(&self) -> Result<HeaderMap, Error> {
        let response = self.send(self.request(reqwest::Method::GET, &["control"])).await?;
        Ok(response.headers().clone())
    }
}
