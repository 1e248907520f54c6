//! Implements the port `FilesStore`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::files::port::{Beside, Declared, Source, SourceFaults};
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::{FilesStore, Listed, Stores};
use slipway_core::files::document::DocumentKind;
use slipway_core::files::fault::Faults;
use slipway_core::files::write::DeclaredObject;
use slipway_core::ids::ProjectId;
use uuid::Uuid;

use super::{Backend, declared, faults};

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

    async fn faults_put(
        &self,
        source: &str,
        project: Option<ProjectId>,
        faults: &Faults,
    ) -> Result<(), Error> {
        self.write((source, project, faults), faults::put).await
    }

    async fn faults_of(&self, source: &str, project: Option<ProjectId>) -> Result<Faults, Error> {
        self.read((source, project), faults::of).await
    }

    async fn faults_list(&self, limit: u32) -> Result<Vec<SourceFaults>, Error> {
        self.read(limit, faults::list).await
    }

    async fn faults_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error> {
        self.statement((keep, limit), faults::prune).await
    }

    async fn source_exists(&self, source: &str, project: Option<ProjectId>) -> Result<bool, Error> {
        self.read((source, project), declared::exists).await
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
