//! The catalog's calls. All of them are one of a few shapes, so the shapes are
//! here and the commands say which.

use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use slipway_wire::api::Deletion;
use slipway_wire::catalog::{Credential, CredentialAssignment};

use super::{Client, Listed};
use crate::error::Error;

impl Client {
    pub(crate) async fn fetch<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, Error> {
        self.decode(self.request(Method::GET, path)).await
    }

    pub(crate) async fn create<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.decode(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn update<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.decode(self.request(Method::PATCH, path).json(body)).await
    }

    pub(crate) async fn replace<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.decode(self.request(Method::PUT, path).json(body)).await
    }

    /// A verb without a body, such as `retire`.
    pub(crate) async fn invoke<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, Error> {
        self.decode(self.request(Method::POST, path)).await
    }

    /// Takes away what leaves a deletion behind.
    pub(crate) async fn delete(
        &self,
        path: &[&str],
        reason: Option<&str>,
    ) -> Result<Deletion, Error> {
        let mut request = self.request(Method::DELETE, path);
        if let Some(reason) = reason {
            request = request.query(&[("reason", reason)]);
        }
        self.decode(request).await
    }

    /// A change that answers what is still to come, or nothing if that is all.
    pub(crate) async fn accepted<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
    ) -> Result<Option<T>, Error> {
        let response = self.send(self.request(method, path)).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        self.read(response).await.map(Some)
    }

    /// A change that answers nothing.
    pub(crate) async fn silent(&self, method: Method, path: &[&str]) -> Result<(), Error> {
        self.send(self.request(method, path)).await.map(|_| ())
    }

    /// A list whose only filter is whether deleted ones are in it.
    pub(crate) async fn list_all<T: DeserializeOwned>(
        &self,
        path: &[&str],
        show_deleted: bool,
        limit: Option<u32>,
    ) -> Result<Listed<T>, Error> {
        let query = show_deleted.then(|| ("show_deleted", "true".to_owned()));
        self.list_at(path, query.into_iter().collect(), limit).await
    }

    pub(crate) async fn credential_list(
        &self,
        cloud: Option<&str>,
        name: Option<&str>,
        show_deleted: bool,
        limit: Option<u32>,
    ) -> Result<Listed<Credential>, Error> {
        let mut query = Vec::new();
        for (field, value) in [("cloud", cloud), ("name", name)] {
            query.extend(value.map(|value| (field, value.to_owned())));
        }
        query.extend(show_deleted.then(|| ("show_deleted", "true".to_owned())));
        self.list_at(&["credentials"], query, limit).await
    }

    pub(crate) async fn assigned_list(
        &self,
        project: &str,
        limit: Option<u32>,
    ) -> Result<Listed<CredentialAssignment>, Error> {
        self.list_at(&["projects", project, "credentials"], Vec::new(), limit).await
    }
}
