//! Implements the port `FilesStore`.

use std::sync::Arc;

use async_trait::async_trait;
use slipway_app::files::port::{Beside, Declared, Source};
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::{FilesStore, Listed, Stores};
use slipway_core::files::document::DocumentKind;
use slipway_core::files::write::DeclaredObject;
use slipway_core::ids::ProjectId;
use uuid::Uuid;

use super::{Backend, declared};

#[async_trait]
impl FilesStore for Backend {
    async fn beside(&self, beside: Arc<Beside>) -> Stores {
        Stores::of(Arc::new(self.with(beside)))
    }

    async fn declared_at(
        &self,
        kind: DocumentKind,
        paths: &[String],
    ) -> Result<Vec<DeclaredObject>, Error> {
        self.read((kind, paths), declared::at).await
    }

    async fn declared_put(&self, rows: &[DeclaredObject]) -> Result<(), Error> {
        self.write(rows, declared::put_all).await
    }

    async fn declared_page(
        &self,
        source: &str,
        project: Option<ProjectId>,
        page: Page<Uuid>,
    ) -> Result<Listed<Declared>, Error> {
        self.read((source, project, page), declared::page).await
    }

    async fn declared_forget(
        &self,
        source: &str,
        kind: DocumentKind,
        path: &str,
        project: Option<ProjectId>,
    ) -> Result<bool, Error> {
        self.statement((source, kind, path, project), declared::forget).await
    }

    async fn source_page(
        &self,
        project: Option<ProjectId>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Source>, Error> {
        self.read((project, after, limit), declared::sources).await
    }
}
