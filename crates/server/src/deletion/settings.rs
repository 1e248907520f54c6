//! Settings of deletions, per project and kind.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use slipway_app::access::reference;
use slipway_app::deletion::settings;
use slipway_core::deletion::settings::{self as core, SettingScope, Values};
use slipway_core::ids::ProjectId;
use slipway_core::subject::SubjectKind;
use slipway_core::{ErrorKind, Refusal};
use slipway_wire::deletion::{DeletionSetting, SetDeletionSetting};

use crate::error::Rejection;
use crate::request::{Body, Call, Done, Referring, Segments, Untagged, add_names, text};

/// Stands for every project, or every kind.
const ALL: &str = "-";

pub(super) async fn list(call: Call) -> Untagged<Vec<DeletionSetting>> {
    let found = settings::list(&call.context, &call.caller).await?;
    let mut documents: Vec<_> = found.iter().map(document).collect();
    add_names(&call.context, &mut documents).await?;
    Ok(Json(documents))
}

pub(super) async fn set(
    call: Call,
    Segments([project, kind]): Segments<2>,
    Body(body): Body<SetDeletionSetting>,
) -> Untagged<DeletionSetting> {
    let scope = scope(&call, &project, &kind).await?;
    let values = Values {
        grace: body.grace_seconds.map(Duration::from_secs),
        retention: body.retention_seconds.map(Duration::from_secs),
        approve_above: body.approve_above,
        purge_protected: body.purge_protected,
    };
    let reason = body.reason.as_deref();
    let found = settings::set(&call.context, &call.caller, scope, values, reason).await?;
    Ok(Json(call.named(document(&found)).await?))
}

pub(super) async fn remove(call: Call, Segments([project, kind]): Segments<2>) -> Done {
    let scope = scope(&call, &project, &kind).await?;
    settings::remove(&call.context, &call.caller, scope, call.query.get("reason")).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn scope(call: &Call, project: &str, kind: &str) -> Result<SettingScope, Rejection> {
    let project = match project {
        ALL => None,
        named => {
            let of = SubjectKind::Project;
            let found = reference::find(&call.context, &call.caller, of, named).await?;
            let unknown = || {
                let text = format!("there is no project `{named}`; check its name or id");
                Refusal::new(ErrorKind::ProjectNotFound, text)
            };
            Some(ProjectId::new(found.ok_or_else(unknown)?))
        }
    };
    let kind = match kind {
        ALL => None,
        named => Some(settings::kind(named)?),
    };
    Ok(SettingScope { project, kind })
}

impl Referring for DeletionSetting {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![(self.project_id.as_deref(), &mut self.project)]
    }
}

fn document(setting: &core::DeletionSetting) -> DeletionSetting {
    let core::DeletionSetting { scope, values, .. } = setting;
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs());
    DeletionSetting {
        project: None,
        project_id: text(scope.project),
        kind: text(scope.kind),
        grace_seconds: seconds(values.grace),
        retention_seconds: seconds(values.retention),
        approve_above: values.approve_above,
        purge_protected: values.purge_protected,
        set_by: setting.set_by.clone(),
        set_at: setting.set_at.to_string(),
        reason: setting.reason.clone(),
    }
}
