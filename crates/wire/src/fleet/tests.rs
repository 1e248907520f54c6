//! Every type against the published contract: its fields, which of them are required, nulls that
//! are not left out, and fields that nobody knows.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn contract() -> Value {
    serde_json::from_str(include_str!("contract.json")).unwrap()
}

fn check<T: Serialize + DeserializeOwned>(name: &str) {
    let contract = contract();
    let (example, required) = (&contract[name]["example"], &contract[name]["required"]);
    let read = |value: &Value| serde_json::from_value::<T>(value.clone());
    let shown = |value: &T| serde_json::to_value(value).unwrap();
    let parsed = read(example).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(&shown(&parsed), example, "{name}");
    let mut more = example.clone();
    more["nobody_knows_this"] = json!(1);
    assert_eq!(&shown(&read(&more).unwrap()), example, "{name}");
    let fields = example.as_object().unwrap();
    for field in fields.keys() {
        let mut less = example.clone();
        less.as_object_mut().unwrap().remove(field);
        let is_required = required.as_array().unwrap().contains(&json!(field));
        assert_eq!(read(&less).is_err(), is_required, "{name}.{field}");
    }
}

/// Checks every type, and that the contract has no other.
macro_rules! check_all {
    ($($name:ident)+) => {
        let mut known = contract();
        $(
            check::<$name>(stringify!($name));
            known.as_object_mut().unwrap().remove(stringify!($name));
        )+
        assert_eq!(known, json!({}), "types that nobody checks");
    };
}

/// What we add is left out unless it says something.
#[test]
fn our_own_fields_are_left_out_unless_they_say_something() {
    let mut marker = contract()["DeploymentObject"]["example"].clone();
    marker["keep"] = json!(true);
    let read: DeploymentObject = serde_json::from_value(marker.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), marker);
    let heartbeat = json!({
        "capabilities": ["keep"], "k8s_api_latency_ms": null, "k8s_reachable": null,
    });
    let read: HeartbeatReport = serde_json::from_value(heartbeat.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), heartbeat);
}

#[test]
fn every_type_is_as_published() {
    check_all! {
        AddAnnotationRequest Agent AgentAnnotation AgentEvent AgentFleetStatusResponse
        AgentGeneratorRegistration AgentK8sEvent AgentLabel AgentPodLog AgentRegistrationBody
        AgentTarget AuditLog AuditLogListResponse AuthResponse CreateAgentRequest
        CreateAgentResponse CreateDeploymentObjectRequest CreateGeneratorResponse
        CreateTemplateRequest DeploymentHealth DeploymentHealthResponse DeploymentObject
        DeploymentObjectHealthSummary DeploymentObjectHealthUpdate ErrorResponse FleetAgentRecord
        Generator HealthStatusUpdate HealthSummary HeartbeatReport K8sEventHistoryResponse
        NewAgentAnnotation NewAgentEvent NewAgentLabel NewAgentTarget NewGenerator NewStack
        NewStackAnnotation PakSummary PodLogHistoryResponse ResourceHealth RetentionInfo Stack
        StackAnnotation StackHealthResponse StackLabel StackTemplate TemplateAnnotation
        TemplateInstantiationRequest TemplateLabel UpdateTemplateRequest WsConnectionInfo
        WsConnectionsResponse
    }
}
