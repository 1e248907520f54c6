//! The node protocol over HTTP: one method per call, one attempt each. The
//! callers decide whether and when to try again.

use reqwest::{Method, Response};
use serde::Serialize;
use slipway_wire::nodes::plexd::{
    DrainAcknowledgement, HeartbeatReply, HeartbeatRequest, RegisterReply, RegisterRequest,
};

use super::config::Config;
use super::error::Error;
use super::identity::Identity;
use crate::http::{Http, decode};
use crate::secret::StoredSecret;

pub(crate) use crate::http::Failure;

/// A reply is a few hundred bytes, with a list of peers some hundred thousand.
const LARGEST_REPLY: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Client {
    http: Http,
}

impl Client {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let api_url = &config.api_url;
        let http = Http::new(api_url, config.authorities.as_deref())
            .map_err(|reason| Error::Client { api_url: api_url.to_string(), reason })?;
        Ok(Self { http })
    }

    pub(crate) async fn register(
        &self,
        token: &StoredSecret,
        request: &RegisterRequest,
    ) -> Result<RegisterReply, Failure> {
        let response = self.post(&["register"], token, request).await?;
        decode(response, LARGEST_REPLY).await
    }

    pub(crate) async fn heartbeat(
        &self,
        identity: &Identity,
        request: &HeartbeatRequest,
    ) -> Result<HeartbeatReply, Failure> {
        let path = ["nodes", &identity.node_id, "heartbeat"];
        let response = self.post(&path, &identity.node_secret_key, request).await?;
        decode(response, LARGEST_REPLY).await
    }

    pub(crate) async fn drain_acknowledge(
        &self,
        identity: &Identity,
        request: &DrainAcknowledgement,
    ) -> Result<(), Failure> {
        let path = ["nodes", &identity.node_id, "drain"];
        self.post(&path, &identity.node_secret_key, request).await.map(|_| ())
    }

    async fn post<T: Serialize + Sync>(
        &self,
        path: &[&str],
        bearer: &StoredSecret,
        body: &T,
    ) -> Result<Response, Failure> {
        let whole = [&["v1"], path].concat();
        let call = path.last().copied().unwrap_or_default();
        let request = self.http.request(Method::POST, &whole).json(body);
        self.http.send(request, bearer, call, call == "heartbeat").await
    }
}
