//! Implements what the port `CatalogStore` has beside the rows of its kinds.

use std::collections::BTreeMap;

use async_trait::async_trait;
use slipway_app::ports::store::{Error, Page, Rule};
use slipway_app::ports::{CatalogStore, Listed};
use slipway_core::catalog::blueprint::PublishedVersion;
use slipway_core::catalog::credential::{
    Credential, CredentialAssignment, CredentialAssignmentSnapshot,
};
use slipway_core::ids::{BlueprintId, BlueprintVersionId, CloudCredentialId, ProjectId};
use slipway_core::text::Labels;

use super::{Backend, blueprint, credential, project};

#[async_trait]
impl CatalogStore for Backend {
    async fn project_labels(
        &self,
        projects: &[ProjectId],
    ) -> Result<BTreeMap<ProjectId, Labels>, Error> {
        self.read(projects, project::labels).await
    }

    async fn decide_credential_assignment(
        &self,
        project: &str,
        credential: CloudCredentialId,
        rule: &mut Rule<'_, CredentialAssignmentSnapshot>,
    ) -> Result<(), Error> {
        self.decided(credential::AssignmentOf { project, credential }, rule).await
    }

    async fn credential_assignment_list(
        &self,
        project: ProjectId,
        page: Page<CloudCredentialId>,
    ) -> Result<Listed<(CredentialAssignment, Credential)>, Error> {
        self.read((project, page), credential::assignment_list).await
    }

    async fn version_fetch(
        &self,
        blueprint: BlueprintId,
        version: &str,
    ) -> Result<Option<PublishedVersion>, Error> {
        self.read((blueprint, version), blueprint::version_fetch).await
    }

    async fn version_list(
        &self,
        blueprint: BlueprintId,
        page: Page<BlueprintVersionId>,
    ) -> Result<Listed<PublishedVersion>, Error> {
        self.read((blueprint, page), blueprint::version_list).await
    }
}
