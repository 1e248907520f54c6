//! Calls about keys, tokens and the audit that are of no common shape.

use reqwest::{Method, Response};
use slipway_wire::access::{AuditEntry, Token};

use super::{Client, Listed};
use crate::arguments::AuditFilterArguments;
use crate::error::Error;

impl Client {
    /// Ends a key or a token.
    pub(crate) async fn revoke(&self, path: &[&str], reason: Option<&str>) -> Result<(), Error> {
        let mut request = self.request(Method::DELETE, path);
        if let Some(reason) = reason {
            request = request.query(&[("reason", reason)]);
        }
        self.send(request).await.map(|_| ())
    }

    pub(crate) async fn token_list(
        &self,
        resource: &str,
        limit: Option<u32>,
    ) -> Result<Listed<Token>, Error> {
        self.list_at(&["resources", resource, "tokens"], Vec::new(), limit).await
    }

    pub(crate) async fn audit_list(
        &self,
        filter: &AuditFilterArguments,
        limit: Option<u32>,
    ) -> Result<Listed<AuditEntry>, Error> {
        self.list_at(&["audit"], query(filter), limit).await
    }

    /// One document a line; read with [`Client::next_piece`].
    pub(crate) async fn audit_export(
        &self,
        filter: &AuditFilterArguments,
    ) -> Result<Response, Error> {
        let request = self.streams.get(self.url(&["audit", "export"])).query(&query(filter));
        self.send(self.authorised(request)).await
    }
}

fn query(filter: &AuditFilterArguments) -> Vec<(&'static str, String)> {
    let given = [
        ("actor", &filter.actor),
        ("verb", &filter.verb),
        ("kind", &filter.kind),
        ("id", &filter.id),
        ("project", &filter.project),
        ("since", &filter.since),
        ("until", &filter.until),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
}
