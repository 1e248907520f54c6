//! Credentials, and which projects may use them.

use axum::http::StatusCode;
use slipway_app::catalog::credentials;
use slipway_app::catalog::port::CredentialFilter;
use slipway_app::catalog::port::CredentialKey;
use slipway_app::deletion::request;
use slipway_core::catalog::credential;
use slipway_core::error::Refusal;
use slipway_core::ids::CloudCredentialId;
use slipway_core::subject::SubjectKind;
use slipway_wire::catalog::{CreateCredential, Credential, CredentialAssignment, UpdateCredential};

use crate::deletion;
use crate::request::{
    Answered, Body, Call, Creation, Documented, Done, Id, IfMatch, Made, Referring, Segments,
    Shown, delete_options, kind, text,
};

pub(super) async fn create(call: Call, new: Creation<CreateCredential>) -> Made {
    let make = async |body: CreateCredential, request| {
        let CreateCredential { cloud, name, kv_mount, kv_path } = body;
        let cloud = call.full_id(SubjectKind::Cloud, cloud).await?;
        let input = credentials::CreateCredential { cloud, name, kv_mount, kv_path };
        credentials::create(&call.context, &call.caller, input, request).await
    };
    kind::create::<credential::Credential, _>(&call, new, make).await
}

pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let filter = CredentialFilter {
        cloud: call.query.text("cloud"),
        name: call.query.text("name"),
        show_deleted: call.query.flag("show_deleted")?,
    };
    let found = credentials::list(&call.context, &call.caller, &filter, page).await?;
    call.named_page(found.map(credential::Credential::document), page.limit).await
}

pub(super) async fn get(call: Call, Id(id): Id<CloudCredentialId>) -> Shown<Credential> {
    kind::show::<credential::Credential>(&call, id, call.query.flag("show_deleted")?).await
}

pub(super) async fn update(
    call: Call,
    Id(id): Id<CloudCredentialId>,
    IfMatch(expected): IfMatch,
    Body(body): Body<UpdateCredential>,
) -> Shown<Credential> {
    let (mount, path) = (body.kv_mount.as_deref(), body.kv_path.as_deref());
    credentials::update(&call.context, &call.caller, id, mount, path, expected).await?;
    kind::show::<credential::Credential>(&call, id, false).await
}

pub(super) async fn delete(
    call: Call,
    Id(id): Id<CloudCredentialId>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let options = delete_options(&call.query, expected)?;
    let key = CredentialKey::Existing(id);
    let id = request::delete::<credential::Credential>(&call.context, &call.caller, &key, options)
        .await?;
    deletion::answer(&call, StatusCode::OK, id).await
}

/// The credentials that a project may use.
pub(super) async fn assigned(call: Call, Segments([project]): Segments<1>) -> Answered {
    let page = call.query.page()?;
    let found = credentials::assigned(&call.context, &call.caller, &project, page).await?;
    call.named_page(found.map(assignment), page.limit).await
}

/// Assigning is idempotent, so it answers 204 and not 201.
pub(super) async fn assign(call: Call, Segments([project, credential]): Segments<2>) -> Done {
    let credential = parse(&credential)?;
    credentials::assign(&call.context, &call.caller, &project, credential).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn withdraw(call: Call, Segments([project, credential]): Segments<2>) -> Done {
    let credential = parse(&credential)?;
    credentials::withdraw(&call.context, &call.caller, &project, credential).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn parse(text: &str) -> Result<CloudCredentialId, Refusal> {
    Ok(text.parse()?)
}

impl Documented for credential::Credential {
    type Document = Credential;

    fn document(&self) -> Credential {
        Credential {
            id: self.id.to_string(),
            cloud: None,
            cloud_id: self.cloud_id.to_string(),
            name: self.name.to_string(),
            kv_mount: self.coordinates.kv_mount.clone(),
            kv_path: self.coordinates.kv_path.clone(),
            revision: self.revision.0,
            created_at: self.created_at.to_string(),
            updated_at: self.updated_at.to_string(),
            deleted_at: text(self.deleted_at),
            deletion_id: text(self.deletion_id),
        }
    }
}

impl Referring for Credential {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![(Some(&self.cloud_id), &mut self.cloud)]
    }
}

impl Referring for CredentialAssignment {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        let mut references = self.credential.references();
        references.push((Some(&self.project_id), &mut self.project));
        references
    }
}

fn assignment(
    (assignment, credential): &(credential::CredentialAssignment, credential::Credential),
) -> CredentialAssignment {
    CredentialAssignment {
        project: None,
        project_id: assignment.project_id.to_string(),
        assigned_at: assignment.created_at.to_string(),
        credential: credential.document(),
    }
}
