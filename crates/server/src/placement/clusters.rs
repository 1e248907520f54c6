//! Clusters, and which project is placed on which.

use axum::http::StatusCode;
use axum::response::IntoResponse;
use slipway_app::placement::clusters;
use slipway_core::placement::cluster;
use slipway_core::placement::namespace;
use slipway_core::subject::SubjectKind;
use slipway_wire::placement::{
    AbandonCluster, AssignCluster, Cluster, ClusterAssignment, ClusterVerification, CreateCluster,
    ProviderStatus, UpdateCluster,
};

use crate::request::{
    Answered, Body, Call, Creation, Documented, IfMatch, Made, Referring, Segments, Shown, Tagged,
    kind, located, text,
};

pub(super) async fn create(call: Call, new: Creation<CreateCluster>) -> Made {
    let make = async |body: CreateCluster, request| {
        let wanted = clusters::ClusterRequest {
            name: &body.name,
            engine: &body.engine,
            namespace_prefix: body.namespace_prefix.as_deref(),
            region: body.region.as_deref(),
            access: body.access.as_deref(),
            protected: body.protected,
        };
        clusters::create(&call.context, &call.caller, wanted, request).await
    };
    kind::create::<cluster::Cluster, _>(&call, new, make).await
}

pub(super) async fn update(
    call: Call,
    Segments([cluster]): Segments<1>,
    IfMatch(expected): IfMatch,
    Body(body): Body<UpdateCluster>,
) -> Shown<Cluster> {
    let wanted = clusters::ClusterChangeRequest {
        region: body.region.as_deref(),
        access: body.access.as_deref(),
        namespace_prefix: body.namespace_prefix.as_deref(),
    };
    clusters::update(&call.context, &call.caller, &cluster, wanted, expected).await?;
    kind::show::<cluster::Cluster>(&call, cluster, false).await
}

/// Places the project on the cluster; idempotent.
pub(super) async fn assign(
    call: Call,
    Segments([project]): Segments<1>,
    IfMatch(expected): IfMatch,
    Body(AssignCluster { cluster, region }): Body<AssignCluster>,
) -> Shown<ClusterAssignment> {
    let cluster = call.full_id_if_any(SubjectKind::Cluster, cluster).await?;
    let (cluster, region) = (cluster.as_deref(), region.as_deref());
    clusters::assign(&call.context, &call.caller, &project, cluster, region, expected).await?;
    fetch_assignment(&call, &project).await
}

pub(super) async fn assignment(
    call: Call,
    Segments([project]): Segments<1>,
) -> Shown<ClusterAssignment> {
    fetch_assignment(&call, &project).await
}

/// 202 while the project's objects on the cluster are still being removed.
pub(super) async fn withdraw(
    call: Call,
    Segments([project]): Segments<1>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let leaving = clusters::withdraw(&call.context, &call.caller, &project, expected).await?;
    let Some(leaving) = leaving else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let location = format!("/api/v1/projects/{}/cluster", leaving.project_id);
    Ok(located(StatusCode::ACCEPTED, location, tagged_assignment(&call, &leaving).await?))
}

/// Answers the placement as it was.
pub(super) async fn abandon(
    call: Call,
    Segments([project]): Segments<1>,
    Body(AbandonCluster { reason, confirm }): Body<AbandonCluster>,
) -> Shown<ClusterAssignment> {
    let given_up =
        clusters::abandon(&call.context, &call.caller, &project, &reason, &confirm).await?;
    tagged_assignment(&call, &given_up).await
}

pub(super) async fn assignments(call: Call) -> Answered {
    let page = call.query.page()?;
    let found = clusters::assignments(&call.context, &call.caller, page).await?;
    call.named_page(found.map(assignment_document), page.limit).await
}

async fn fetch_assignment(call: &Call, project: &str) -> Shown<ClusterAssignment> {
    let found = clusters::assignment(&call.context, &call.caller, project).await?;
    tagged_assignment(call, &found).await
}

async fn tagged_assignment(
    call: &Call,
    found: &cluster::ClusterAssignment,
) -> Shown<ClusterAssignment> {
    let document = call.named(assignment_document(found)).await?;
    Ok(Tagged { revision: found.revision.0, document })
}

impl Referring for Cluster {}

impl Referring for ClusterAssignment {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        let providers = self.providers.iter_mut();
        let mut references: Vec<_> = providers
            .map(|found| (Some(found.credential_id.as_str()), &mut found.credential))
            .collect();
        references.push((Some(&self.project_id), &mut self.project));
        references.push((Some(&self.cluster_id), &mut self.cluster));
        references
    }
}

impl Documented for cluster::Cluster {
    type Document = Cluster;

    fn document(&self) -> Cluster {
        Cluster {
            id: self.id.to_string(),
            name: self.name.to_string(),
            engine: self.engine.to_string(),
            substrate_uid: self.substrate_uid.clone(),
            namespace_prefix: self.namespace_prefix.as_str().to_owned(),
            region: text(self.region.as_ref()),
            access: text(self.access.as_ref()),
            verification: self.verification.as_ref().map(|found| ClusterVerification {
                verified_at: found.at.to_string(),
                problem: found.problem.clone(),
                facts: found.facts.clone(),
            }),
            revision: self.revision.0,
            created_at: self.created_at.to_string(),
            updated_at: self.updated_at.to_string(),
            deleted_at: text(self.deleted_at),
            deletion_id: text(self.deletion_id),
        }
    }
}

fn assignment_document(found: &cluster::ClusterAssignment) -> ClusterAssignment {
    ClusterAssignment {
        project: None,
        project_id: found.project_id.to_string(),
        cluster: None,
        cluster_id: found.cluster_id.to_string(),
        namespace: found.namespace.clone(),
        namespace_phase: found.namespace_phase.to_string(),
        withdrawn_at: text(found.withdrawn_at),
        providers: found.status.providers.iter().map(provider).collect(),
        problems: found.status.problems.clone(),
        revision: found.revision.0,
        created_at: found.created_at.to_string(),
        updated_at: found.updated_at.to_string(),
    }
}

fn provider(status: &namespace::ProviderStatus) -> ProviderStatus {
    ProviderStatus {
        provider: status.provider.clone(),
        provider_config: status.config.clone(),
        credential: None,
        credential_id: status.credential_id.to_string(),
        phase: status.phase.to_string(),
        problem: status.problem.clone(),
    }
}
