//! Implements what the port `CatalogStore` has beside the rows of its kinds.

use std::collections::BTreeMap;

use slipway_app::ports::store::{Error, Page, Rule};
use slipway_app::ports::{CatalogStore, Listed};
use slipway_core::catalog::blueprint::PublishedVersion;
use slipway_core::catalog::credential::{
    Credential, CredentialAssignment, CredentialAssignmentSnapshot,
};
use slipway_core::ids::{BlueprintId, BlueprintVersionId, CloudCredentialId, ProjectId};
use slipway_core::text::Labels;

use super::{Backend, blueprint, credential, project};

port! {
    CatalogStore {
        read project_labels(projects: &[ProjectId])
            -> BTreeMap<ProjectId, Labels> = project::labels;
        read credential_assignment_list(project: ProjectId, page: Page<CloudCredentialId>)
            -> Listed<(CredentialAssignment, Credential)> = credential::assignment_list;
        read credential_assignments_of(projects: &[ProjectId])
            -> Vec<CredentialAssignment> = credential::assignments_of;
        read version_fetch(blueprint: BlueprintId, version: &str)
            -> Option<PublishedVersion> = blueprint::version_fetch;
        read version_list(blueprint: BlueprintId, page: Page<BlueprintVersionId>)
            -> Listed<PublishedVersion> = blueprint::version_list;
    }
    by_hand {
        async fn decide_credential_assignment(
            &self,
            project: &str,
            credential: CloudCredentialId,
            rule: &mut Rule<'_, CredentialAssignmentSnapshot>,
        ) -> Result<(), Error> {
            self.decided(credential::AssignmentOf { project, credential }, rule).await
        }
    }
}
