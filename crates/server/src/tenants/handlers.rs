//! Tenants and their jobs.

use axum::Json;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode};
use axum::response::IntoResponse as _;
use futures::stream;
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_app::tenants::provision::{self, ListTenants};
use slipway_app::tenants::targets::TargetError;
use slipway_app::tenants::{export, jobs, repair, resume};
use slipway_core::catalog::project::Project;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{TenantId, TenantJobId};
use slipway_core::tenants::task::Repair;
use slipway_core::tenants::{job, tenant};
use slipway_wire::tenants::{
    ProvisionTenant, RefusedTenant, RepairTenant, RepairTenants, RepairedTenants, ResumeTenant,
    RetriedTenants, RetryTenants, Tenant, TenantDifference, TenantDrift, TenantJob, TenantJobLine,
};

use crate::deletion;
use crate::request::{
    Answered, Body, Call, Creation, Documented, Id, IfMatch, Made, Referring, Segments, Untagged,
    create_once, delete_options, kind, located, text,
};

pub(super) async fn provision(
    call: Call,
    Segments([project]): Segments<1>,
    new: Creation<ProvisionTenant>,
) -> Made {
    let make = async |body: ProvisionTenant, request| {
        let of = (project.as_str(), body.profile.as_str(), body.name.as_str());
        provision::provision(&call.context, &call.caller, of, request).await
    };
    let show = async |id| {
        let shown = kind::show::<tenant::Tenant>(&call, id, true).await?;
        Ok(shown.created(format!("/api/v1/tenants/{id}")))
    };
    create_once(&call, new, make, show).await
}

pub(super) async fn list(call: Call) -> Answered {
    listed(&call, call.query.get("project")).await
}

pub(super) async fn list_in(call: Call, Segments([project]): Segments<1>) -> Answered {
    // What the path names is not there, rather than a filter at fault.
    slipway_app::kind::fetch::<Project>(&call.context, &call.caller, &project, false).await?;
    listed(&call, Some(&project)).await
}

async fn listed(call: &Call, project: Option<&str>) -> Answered {
    let page: Page<TenantId> = call.query.page()?;
    let wanted = ListTenants {
        project,
        profile: call.query.get("profile"),
        state: call.query.get("state"),
        show_deleted: call.query.flag("show_deleted")?,
    };
    let filter = wanted.filter(&call.context, &call.caller).await?;
    let found = provision::list(&call.context, &call.caller, &filter, page).await?;
    call.named_page(found.map(tenant::Tenant::document), page.limit).await
}

pub(super) async fn get(call: Call, Id(id): Id<TenantId>) -> crate::request::Shown<Tenant> {
    kind::show::<tenant::Tenant>(&call, id, call.query.flag("show_deleted")?).await
}

pub(super) async fn delete(
    call: Call,
    Id(id): Id<TenantId>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let options = delete_options(&call.query, expected)?;
    let deletion = provision::delete(&call.context, &call.caller, id, options).await?;
    deletion::answer(&call, StatusCode::OK, deletion).await
}

pub(super) async fn retry(
    call: Call,
    Id(id): Id<TenantId>,
    IfMatch(expected): IfMatch,
) -> Answered {
    provision::retry(&call.context, &call.caller, id, expected).await?;
    let shown = kind::show::<tenant::Tenant>(&call, id, false).await?;
    let location = format!("/api/v1/tenants/{id}");
    Ok(located(StatusCode::ACCEPTED, location, Json(shown.document)))
}

pub(super) async fn retry_many(
    call: Call,
    Body(body): Body<RetryTenants>,
) -> Untagged<RetriedTenants> {
    let wanted = ListTenants {
        project: body.project.as_deref(),
        profile: body.profile.as_deref(),
        ..ListTenants::default()
    };
    let filter = wanted.filter(&call.context, &call.caller).await?;
    let many = provision::retry_many(&call.context, &call.caller, &filter).await?;
    Ok(Json(RetriedTenants {
        retried: many.retried.iter().map(|tenant| tenant.name.to_string()).collect(),
        refused: refused(&many.refused),
        has_more: many.has_more,
    }))
}

fn refused(tenants: &[(tenant::Tenant, Refusal)]) -> Vec<RefusedTenant> {
    let refused = tenants.iter().map(|(tenant, refusal)| RefusedTenant {
        name: tenant.name.to_string(),
        id: tenant.id.to_string(),
        code: refusal.kind.code().to_owned(),
        message: refusal.message.clone(),
    });
    refused.collect()
}

pub(super) async fn repair(
    call: Call,
    Id(id): Id<TenantId>,
    IfMatch(expected): IfMatch,
    Body(body): Body<RepairTenant>,
) -> Answered {
    let wanted = Repair::parse(&body.version, &body.found)?;
    repair::one(&call.context, &call.caller, id, &wanted, expected).await?;
    let shown = kind::show::<tenant::Tenant>(&call, id, false).await?;
    let location = format!("/api/v1/tenants/{id}");
    Ok(located(StatusCode::ACCEPTED, location, Json(shown.document)))
}

pub(super) async fn resume(
    call: Call,
    Id(id): Id<TenantId>,
    IfMatch(expected): IfMatch,
    Body(body): Body<ResumeTenant>,
) -> Answered {
    let (reason, clean_up) = (&body.reason, body.clean_up);
    resume::resume(&call.context, &call.caller, id, reason, clean_up, expected).await?;
    let shown = kind::show::<tenant::Tenant>(&call, id, true).await?;
    let location = format!("/api/v1/tenants/{id}");
    Ok(located(StatusCode::ACCEPTED, location, Json(shown.document)))
}

pub(super) async fn repair_many(
    call: Call,
    Body(body): Body<RepairTenants>,
) -> Untagged<RepairedTenants> {
    let repair = Repair::parse(&body.version, &body.found)?;
    let wanted = ListTenants {
        project: body.project.as_deref(),
        profile: Some(&body.profile),
        ..ListTenants::default()
    };
    let filter = wanted.filter(&call.context, &call.caller).await?;
    let many = repair::many(&call.context, &call.caller, &filter, &repair).await?;
    Ok(Json(RepairedTenants {
        repaired: many.repaired.iter().map(|tenant| tenant.name.to_string()).collect(),
        refused: refused(&many.refused),
        has_more: many.has_more,
    }))
}

pub(super) async fn job_list(call: Call, Id(id): Id<TenantId>) -> Answered {
    let page: Page<TenantJobId> = call.query.page()?;
    let state = call.query.get("state");
    let found = jobs::list(&call.context, &call.caller, id, state, page).await?;
    let listed = Listed::complete(found, page.limit, |last| last.id.as_uuid()).map(job_document);
    call.named_page(listed, page.limit).await
}

pub(super) async fn job_get(call: Call, Segments([job]): Segments<1>) -> Untagged<TenantJob> {
    let (job, _) = jobs::fetch(&call.context, &call.caller, &job).await?;
    Ok(Json(call.named(job_document(&job)).await?))
}

/// One piece is in memory at a time. If the copy fails in the middle, the connection breaks off, so
/// that nobody takes a part for the whole.
pub(super) async fn export(
    call: Call,
    Id(id): Id<TenantId>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let export = export::export(&call.context, &call.caller, id, expected).await?;
    let pieces = stream::try_unfold(export, |mut export| async {
        let piece = export.piece().await.inspect_err(|error| {
            tracing::warn!(%error, "a copy of a tenant breaks off");
        })?;
        Ok::<_, TargetError>(piece.map(|piece| (Bytes::from(piece), export)))
    });
    let headers = [
        (CONTENT_TYPE, "application/octet-stream"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, axum::body::Body::from_stream(pieces)).into_response())
}

pub(super) async fn drift(call: Call, Id(id): Id<TenantId>) -> Untagged<TenantDrift> {
    let deep = call.query.flag("deep")?;
    let found = provision::drift(&call.context, &call.caller, id, deep).await?;
    let differences: Vec<TenantDifference> = serde_json::from_value(found).map_err(|error| {
        Refusal::new(ErrorKind::Internal, format!("the comparison cannot be shown: {error}"))
    })?;
    Ok(Json(TenantDrift { differences }))
}

impl Referring for Tenant {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![
            (Some(&self.project_id), &mut self.project),
            (Some(&self.profile_id), &mut self.profile),
        ]
    }
}

impl Referring for TenantJob {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![(Some(&self.tenant_id), &mut self.tenant)]
    }
}

impl Documented for tenant::Tenant {
    type Document = Tenant;

    fn document(&self) -> Tenant {
        Tenant {
            id: self.id.to_string(),
            name: self.name.to_string(),
            project: None,
            project_id: self.project_id.to_string(),
            profile: None,
            profile_id: self.profile_id.to_string(),
            state: self.state.to_string(),
            job_id: self.job_id.to_string(),
            version: self.version.clone(),
            target_name: self.target_name.clone(),
            closed: self.closed,
            leaks: self.leaks,
            last_error: self.last_error.clone(),
            waiting_reason: self.waiting_reason.clone(),
            revision: self.revision.0,
            created_at: self.created_at.to_string(),
            updated_at: self.updated_at.to_string(),
            deleted_at: text(self.deleted_at),
            deletion_id: text(self.deletion_id),
        }
    }
}

fn job_document(job: &job::TenantJob) -> TenantJob {
    let line = |line: &job::JobLine| TenantJobLine {
        from: line.from.clone(),
        to: line.to.clone(),
        at: line.at.to_string(),
        worker: line.worker.clone(),
        error: line.error.clone(),
    };
    TenantJob {
        id: job.id.to_string(),
        tenant: None,
        tenant_id: job.tenant_id.to_string(),
        state: job.state.to_string(),
        attempts: job.attempts,
        last_error: Some(job.last_error.clone()).filter(|error| !error.is_empty()),
        retry_of: text(job.retry_of),
        step_attempts: job.step_attempts,
        due_at: text(job.not_before),
        worker: job.worker.clone(),
        made: job.made.clone(),
        leaked: job.leaked.clone(),
        history: job.history.iter().map(line).collect(),
        paused: job.paused.clone(),
        created_at: job.created_at.to_string(),
        updated_at: job.updated_at.to_string(),
    }
}
