//! The rows of the catalog.

use slipway_app::access::authorise::Operation::*;
use slipway_core::catalog::{blueprint, cloud, label, project};
use slipway_wire::catalog::{
    Blueprint, BlueprintVersion, Cloud, CreateBlueprint, CreateCloud, CreateCredential,
    CreateProject, Credential, CredentialAssignment, DefineLabel, LabelDefinition, Project,
    PublishVersion, UpdateBlueprint, UpdateCloud, UpdateCredential, UpdateLabel, UpdateProject,
};
use slipway_wire::deletion::Deletion;

use super::{blueprints, clouds, credentials, labels, projects};
use crate::request::kind;
use crate::routes::{Route, delete, get, patch, post, put};

pub(crate) fn rows() -> Vec<Route> {
    let kinds = [project_rows(), cloud_rows(), credential_rows(), blueprint_rows(), label_rows()];
    kinds.into_iter().flatten().collect()
}

#[rustfmt::skip]
fn project_rows() -> Vec<Route> {
    vec![
        get   ("/projects",           ProjectRead,   projects::list,                   "List projects").page::<Project>().query(&["show_deleted"]),
        post  ("/projects",           ProjectCreate, projects::create,                 "Create a project").create::<CreateProject, Project>(),
        get   ("/projects/{project}", ProjectRead,   kind::get::<project::Project>,    "Show a project").one::<Project>().query(&["show_deleted"]),
        patch ("/projects/{project}", ProjectUpdate, projects::update,                 "Change a project")
            .body::<UpdateProject>().one::<Project>().conditional(),
        delete("/projects/{project}", ProjectDelete, kind::delete::<project::Project>, "Delete a project, with what is in it if `cascade` is set")
            .one::<Deletion>().query(&["reason", "grace", "plan", "cascade", "break_glass"]).conditional(),
    ]
}

#[rustfmt::skip]
fn cloud_rows() -> Vec<Route> {
    vec![
        get   ("/clouds",         CloudRead,   kind::list::<cloud::Cloud>,   "List clouds").page::<Cloud>().query(&["show_deleted"]),
        post  ("/clouds",         CloudCreate, clouds::create,               "Create a cloud").create::<CreateCloud, Cloud>(),
        get   ("/clouds/{cloud}", CloudRead,   kind::get::<cloud::Cloud>,    "Show a cloud").one::<Cloud>().query(&["show_deleted"]),
        patch ("/clouds/{cloud}", CloudUpdate, clouds::update,               "Change a cloud").body::<UpdateCloud>().one::<Cloud>().conditional(),
        delete("/clouds/{cloud}", CloudDelete, kind::delete::<cloud::Cloud>, "Delete a cloud").one::<Deletion>().query(&["reason", "grace", "plan", "break_glass"]).conditional(),
    ]
}

#[rustfmt::skip]
fn credential_rows() -> Vec<Route> {
    vec![
        get   ("/credentials",                                 CredentialRead,         credentials::list,     "List credentials")
            .page::<Credential>().query(&["cloud", "name", "show_deleted"]),
        post  ("/credentials",                                 CredentialCreate,       credentials::create,   "Create a credential")
            .create::<CreateCredential, Credential>(),
        get   ("/credentials/{id}",                            CredentialRead,         credentials::get,      "Show a credential")
            .one::<Credential>().query(&["show_deleted"]),
        patch ("/credentials/{id}",                            CredentialUpdate,       credentials::update,   "Change the path of a credential")
            .body::<UpdateCredential>().one::<Credential>().conditional(),
        delete("/credentials/{id}",                            CredentialDelete,       credentials::delete,   "Delete a credential")
            .one::<Deletion>().query(&["reason", "grace", "plan", "break_glass"]).conditional(),
        get   ("/projects/{project}/credentials",              CredentialReadAssigned, credentials::assigned, "List the credentials that a project may use")
            .page::<CredentialAssignment>(),
        put   ("/projects/{project}/credentials/{credential}", CredentialAssign,       credentials::assign,   "Let a project use a credential")
            .nothing(),
        delete("/projects/{project}/credentials/{credential}", CredentialWithdraw,     credentials::withdraw, "Withdraw a credential from a project")
            .nothing(),
    ]
}

#[rustfmt::skip]
fn blueprint_rows() -> Vec<Route> {
    vec![
        get   ("/blueprints",                                       BlueprintRead,    kind::list::<blueprint::Blueprint>, "List blueprints")
            .page::<Blueprint>().query(&["show_deleted"]),
        post  ("/blueprints",                                       BlueprintCreate,  blueprints::create,                 "Create a blueprint")
            .create::<CreateBlueprint, Blueprint>(),
        get   ("/blueprints/{blueprint}",                           BlueprintRead,    kind::get::<blueprint::Blueprint>,  "Show a blueprint")
            .one::<Blueprint>().query(&["show_deleted"]),
        patch ("/blueprints/{blueprint}",                           BlueprintUpdate,  blueprints::update,                 "Change the name and description of a blueprint")
            .body::<UpdateBlueprint>().one::<Blueprint>().conditional(),
        delete("/blueprints/{blueprint}",                           BlueprintDelete,  blueprints::delete,                 "Delete a blueprint that nothing is made from, with its versions")
            .one::<Deletion>().query(&["reason", "grace", "plan", "break_glass"]).conditional(),
        get   ("/blueprints/{blueprint}/versions",                  BlueprintRead,    blueprints::versions,               "List the versions of a blueprint")
            .page::<BlueprintVersion>().query(&["show_deleted"]),
        post  ("/blueprints/{blueprint}/versions",                  BlueprintPublish, blueprints::publish,                "Publish a version; it never changes")
            .create::<PublishVersion, BlueprintVersion>(),
        get   ("/blueprints/{blueprint}/versions/{version}",        BlueprintRead,    blueprints::version,                "Show a version of a blueprint")
            .one::<BlueprintVersion>().query(&["show_deleted"]),
        post  ("/blueprints/{blueprint}/versions/{version}/retire", BlueprintRetire,  blueprints::retire,                 "Retire a version of a blueprint")
            .one::<BlueprintVersion>().conditional(),
    ]
}

#[rustfmt::skip]
fn label_rows() -> Vec<Route> {
    vec![
        get   ("/labels",         LabelRead,   kind::list::<label::LabelDefinition>,   "List label definitions")
            .page::<LabelDefinition>().query(&["show_deleted"]),
        post  ("/labels",         LabelDefine, labels::define,                         "Define a label").create::<DefineLabel, LabelDefinition>(),
        get   ("/labels/{label}", LabelRead,   kind::get::<label::LabelDefinition>,    "Show a label definition")
            .one::<LabelDefinition>().query(&["show_deleted"]),
        patch ("/labels/{label}", LabelUpdate, labels::update,                         "Change a label definition")
            .body::<UpdateLabel>().one::<LabelDefinition>().conditional(),
        delete("/labels/{label}", LabelDelete, kind::delete::<label::LabelDefinition>, "Delete a label definition")
            .one::<Deletion>().query(&["reason", "grace", "plan", "break_glass"]).conditional(),
    ]
}
