//! The whole installation at a glance.

use std::collections::BTreeMap;
use std::fmt::Display;

use axum::Json;
use axum::extract::State;
use slipway_app::operations::status::{self, Status};
use slipway_wire::operations::{ClusterStatus, InstallationStatus, NextDeletion};

use crate::request::{Call, Untagged, text};
use crate::state::ServerState;

pub(super) async fn get(
    call: Call,
    State(state): State<ServerState>,
) -> Untagged<InstallationStatus> {
    let Status { counts, leaks, brakes, file_faults, scheduled, clusters } =
        status::status(&call.context, &call.caller).await?;
    let clusters = clusters.into_iter().map(|(cluster, lag)| ClusterStatus {
        name: cluster.name.to_string(),
        engine: cluster.engine.to_string(),
        problem: cluster
            .verification
            .and_then(|found| found.problem)
            .or_else(|| cluster.substrate_uid.is_none().then(|| "not verified yet".to_owned())),
        lag_seconds: lag.map(|lag| lag.as_secs()),
    });
    Ok(Json(InstallationStatus {
        phases: named(counts.phases),
        blockers: named(counts.blockers),
        nodes: named(counts.nodes),
        leaks,
        brakes,
        file_faults: file_faults.into_iter().map(|one| (one.source, one.total)).collect(),
        scheduled_deletions: scheduled.count,
        next_deletion: scheduled.next.map(|next| NextDeletion {
            id: next.id.to_string(),
            kind: next.target.kind.to_string(),
            name: next.name,
            scheduled_for: text(next.scheduled_for),
        }),
        clusters: clusters.collect(),
        loops: state.loops.statuses(),
    }))
}

fn named<K: Display>(counts: BTreeMap<K, u64>) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(key, count)| (key.to_string(), count)).collect()
}
