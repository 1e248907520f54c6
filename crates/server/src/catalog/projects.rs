//! Projects.

use slipway_app::catalog::projects::{self, Change, Draft};
use slipway_app::kind::ShowDeleted;
use slipway_core::catalog::project;
use slipway_wire::catalog::{CreateProject, Project, UpdateProject};

use crate::request::kind::{self, FromQuery as _};
use crate::request::{
    Answered, Body, Call, Creation, Documented, IfMatch, Made, Referring, Segments, Shown, text,
};

pub(super) async fn create(call: Call, new: Creation<CreateProject>) -> Made {
    let make = async |body: CreateProject, request| {
        let mesh_cidr = body.mesh_cidr.as_deref();
        let (labels, protected) = (body.labels, body.protected);
        let draft = Draft { name: &body.name, labels, mesh_cidr, protected };
        projects::create(&call.context, &call.caller, draft, request).await
    };
    kind::create::<project::Project, _>(&call, new, make).await
}

pub(super) async fn list(call: Call) -> Answered {
    let (page, filter) = (call.query.page()?, ShowDeleted::from_query(&call.query)?);
    let found = projects::list(&call.context, &call.caller, &filter, page).await?;
    Ok(call.page(found.map(project::Project::document), page.limit))
}

pub(super) async fn update(
    call: Call,
    Segments([project]): Segments<1>,
    IfMatch(expected): IfMatch,
    Body(body): Body<UpdateProject>,
) -> Shown<Project> {
    let change = Change { labels: body.labels, mesh_cidr: body.mesh_cidr.as_deref() };
    projects::update(&call.context, &call.caller, &project, change, expected).await?;
    kind::show::<project::Project>(&call, project, false).await
}

impl Referring for Project {}

impl Documented for project::Project {
    type Document = Project;

    fn document(&self) -> Project {
        Project {
            id: self.id.to_string(),
            name: self.name.to_string(),
            labels: self.labels.as_map().clone(),
            mesh_cidr: self.mesh_cidr.to_string(),
            revision: self.revision.0,
            created_at: self.created_at.to_string(),
            updated_at: self.updated_at.to_string(),
            deleted_at: text(self.deleted_at),
            deletion_id: text(self.deletion_id),
        }
    }
}
