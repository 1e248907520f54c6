//! The health of workloads, by what their controllers write into their status.

use serde_json::Value;

use super::super::backend::{Fault, Health};
use super::super::inventory::Reference;
use super::backend::{ClusterBackend, at_once, fault, object_ref};

/// Whether an object has pods whose readiness it tells.
pub(super) fn is_workload(reference: &Reference) -> bool {
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    matches!(
        (group, &*reference.kind),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
            | ("batch", "Job")
            | ("", "Pod" | "ReplicationController")
    )
}

impl ClusterBackend {
    pub(super) async fn health_of(&mut self, references: &[Reference]) -> Result<Health, Fault> {
        let connection = &self.connection;
        let asked = references.iter().map(|reference| {
            let object = object_ref(reference);
            async move { connection.get(&object).await }
        });
        let found = at_once(asked.collect()).await;
        let mut health = Health::default();
        for (reference, found) in references.iter().zip(found) {
            match found.map_err(fault)? {
                Some(live) => add(&mut health, reference, &live.data),
                None => {
                    health.pods_total += 1;
                    health.failures.push(format!("{reference} is not there"));
                }
            }
        }
        Ok(health)
    }
}

/// Adds one workload.
fn add(health: &mut Health, reference: &Reference, live: &Value) {
    let (spec, status) = (&live["spec"], &live["status"]);
    let number = |value: &Value, otherwise: i64| {
        i32::try_from(value.as_i64().unwrap_or(otherwise)).unwrap_or(i32::MAX)
    };
    let condition = |kind: &str| {
        let all = status["conditions"].as_array().into_iter().flatten();
        all.into_iter().find(|condition| condition["type"] == kind)
    };
    let (ready, total) = match &*reference.kind {
        "DaemonSet" => {
            (number(&status["numberReady"], 0), number(&status["desiredNumberScheduled"], 0))
        }
        "Pod" => {
            let is_ready = condition("Ready").is_some_and(|ready| ready["status"] == "True");
            (i32::from(is_ready || status["phase"] == "Succeeded"), 1)
        }
        "Job" => {
            let total = number(&spec["completions"], 1);
            let is_complete =
                condition("Complete").is_some_and(|complete| complete["status"] == "True");
            (if is_complete { total } else { number(&status["succeeded"], 0) }, total)
        }
        _ => {
            // The status of an earlier generation says nothing about this one.
            let seen = status["observedGeneration"].as_i64();
            let is_current = seen >= live["metadata"]["generation"].as_i64();
            let ready = if is_current { number(&status["readyReplicas"], 0) } else { 0 };
            (ready, number(&spec["replicas"], 1))
        }
    };
    health.pods_ready += ready.min(total);
    health.pods_total += total;
    let failures = [("Progressing", "False"), ("ReplicaFailure", "True"), ("Failed", "True")];
    for (kind, bad) in failures {
        if let Some(found) = condition(kind).filter(|found| found["status"] == bad) {
            let reason = found["reason"].as_str().unwrap_or(kind);
            health.failures.push(format!("{reference}: {reason}"));
        }
    }
    if reference.kind == "Pod" && status["phase"] == "Failed" {
        health.failures.push(format!("{reference}: Failed"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::inventory::tests::mk_reference;
    use super::*;

    fn of(kind: &str, api_version: &str, live: &Value) -> (i32, i32, &'static str) {
        let reference = Reference {
            kind: kind.to_owned(),
            api_version: api_version.to_owned(),
            ..mk_reference("w")
        };
        assert!(is_workload(&reference));
        let mut health = Health::default();
        add(&mut health, &reference, live);
        (health.pods_ready, health.pods_total, health.status())
    }

    #[test]
    fn a_workload_is_as_healthy_as_its_pods() {
        let deployment = |ready: i64, seen: i64| {
            json!({
                "metadata": { "generation": 2 }, "spec": { "replicas": 3 },
                "status": { "readyReplicas": ready, "observedGeneration": seen },
            })
        };
        assert_eq!(of("Deployment", "apps/v1", &deployment(3, 2)), (3, 3, "healthy"));
        assert_eq!(of("Deployment", "apps/v1", &deployment(1, 2)), (1, 3, "degraded"));
        assert_eq!(of("Deployment", "apps/v1", &deployment(3, 1)), (0, 3, "degraded"));
        assert_eq!(
            of("Deployment", "apps/v1", &json!({"metadata": {"generation": 1}})).2,
            "degraded"
        );
        let set = json!({ "status": { "numberReady": 2, "desiredNumberScheduled": 2 } });
        assert_eq!(of("DaemonSet", "apps/v1", &set), (2, 2, "healthy"));
        let condition = |kind: &str, status: &str| json!({ "status": { "conditions": [{ "type": kind, "status": status }] } });
        assert_eq!(of("Pod", "v1", &condition("Ready", "True")), (1, 1, "healthy"));
        assert_eq!(of("Job", "batch/v1", &condition("Complete", "True")), (1, 1, "healthy"));
        assert_eq!(of("Job", "batch/v1", &condition("Failed", "True")).2, "failing");
        assert_eq!(of("Deployment", "apps/v1", &condition("Progressing", "False")).2, "failing");
    }
}
