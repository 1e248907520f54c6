//! The rows of Fleet: those of its protocol, in its order, and our own beside them.

use serde_json::Value;
use slipway_app::access::authorise::Operation::*;
use slipway_core::fleet::{generator, stack, template};
use slipway_core::ids::{AgentId, StackId, TemplateId};
use slipway_wire::fleet::*;
use slipway_wire::operations::Explanation;
use slipway_wire::rollouts::RolloutStrategy;

use super::deleting::OPTIONS;
use super::{
    agents, audit, explain, generators, links, objects, offers, outside, overview, principals,
    prunes, reports, stacks, tags, templates,
};
use crate::request::kind;
use crate::routes::{Route, delete, get, patch, post, put};

pub(crate) fn rows() -> Vec<Route> {
    let rooms = [
        agent_rows(),
        generator_rows(),
        stack_rows(),
        object_rows(),
        template_rows(),
        overview_rows(),
        outside_rows(),
    ];
    rooms.into_iter().flatten().map(Route::compatible).collect()
}

/// Lists are whole unless one of the last two is given.
const FILTERS: &[&str] = &["project", "name", "show_deleted", "limit", "cursor"];

#[rustfmt::skip]
fn agent_rows() -> Vec<Route> {
    vec![
        get   ("/agents",  FleetRead,        agents::list,   "List agents; for a generator those that are registered with it")
            .all::<Agent>().query(FILTERS).query(&["generator_id"]),
        post  ("/agents",  FleetAgentCreate, agents::create, "Create an agent, with its key, registered with these generators")
            .create::<CreateAgentRequest, CreateAgentResponse>(),
        get   ("/agents/", FleetRead,        agents::find,   "Show the agent of a name and a cluster")
            .one::<Agent>().query(&["name", "cluster_name", "project"]).refuses(404),
        get   ("/agents/{id}", FleetRead,        agents::get,    "Show an agent").one::<Agent>().query(&["show_deleted"]),
        put   ("/agents/{id}", FleetAgentUpdate, agents::update, "Change name, cluster name or status of an agent")
            .body::<UpdateAgent>().one::<Agent>().conditional(),
        delete("/agents/{id}", FleetAgentDelete, agents::delete, "Delete an agent; what it holds becomes leak records")
            .nothing().query(OPTIONS).conditional(),
        post  ("/agents/{id}/rotate-pak", FleetKeyRotate, agents::rotate, "Replace the key of an agent").one::<AgentKey>(),
        post  ("/agents/{id}/heartbeat", FleetReport, reports::heartbeat, "An agent lives; the body may be empty").body::<HeartbeatReport>().nothing(),
        get   ("/agents/{id}/target-state", FleetOffer, offers::target_state, "What an agent is told to deploy: of every stack the object that counts, and owed markers")
            .all::<DeploymentObject>().statuses(&[200, 304]).query(&["mode", "wait"]),
        get   ("/agents/{id}/stacks", FleetRead, offers::stacks, "List the stacks that an agent is to have").all::<Stack>(),
        get   ("/agents/{id}/registrations", FleetRead, links::of_agent, "List the generators that an agent is registered with")
            .all::<AgentGeneratorRegistration>().query(&["limit", "cursor"]),
        get   ("/agents/{id}/targets", FleetRead, links::targets, "List the stacks that somebody named for an agent")
            .all::<AgentTarget>().query(&["limit", "cursor"]),
        post  ("/agents/{id}/targets", FleetAgentTarget, links::add_target, "Name a stack for an agent that is registered with its generator")
            .body::<NewAgentTarget>().one::<AgentTarget>().statuses(&[201]),
        delete("/agents/{id}/targets/{stack_id}", FleetAgentTarget, links::remove_target, "Take a stack from an agent").nothing(),
        get   ("/agents/{id}/events", FleetRead, reports::of_agent, "List what an agent reported, the newest first").all::<AgentEvent>().query(&["limit"]),
        post  ("/agents/{id}/events", FleetReport, reports::report, "Report about an object; the same report again is the same one")
            .body::<NewAgentEvent>().one::<AgentEvent>().statuses(&[201]).refuses(422),
        patch ("/agents/{id}/health-status", FleetReport, reports::health, "Report how healthy objects are")
            .body::<HealthStatusUpdate>(),
        get   ("/agents/{id}/labels", FleetRead, tags::labels::<AgentId>, "List the labels of an agent").all::<AgentLabel>(),
        post  ("/agents/{id}/labels", FleetAgentTag, tags::label_agent, "Add a label to an agent")
            .body::<NewAgentLabel>().one::<AgentLabel>().statuses(&[201]),
        delete("/agents/{id}/labels/{label}", FleetAgentTag, tags::unlabel::<AgentId>, "Remove a label of an agent").nothing(),
        get   ("/agents/{id}/annotations", FleetRead, tags::annotations::<AgentId>, "List the annotations of an agent").all::<AgentAnnotation>(),
        post  ("/agents/{id}/annotations", FleetAgentTag, tags::annotate_agent, "Add an annotation to an agent")
            .body::<NewAgentAnnotation>().one::<AgentAnnotation>().statuses(&[201]),
        delete("/agents/{id}/annotations/{key}", FleetAgentTag, tags::unannotate::<AgentId>, "Remove an annotation of an agent").nothing(),
        put   ("/agents/{id}/prune-refusal", FleetReport, prunes::refuse, "An agent says which removal it refuses until somebody confirms it")
            .body::<PruneRefusal>().nothing(),
        get   ("/agents/{id}/prune-confirmations", FleetRead, prunes::list, "Show the removal that an agent may carry out").all::<PruneConfirmation>(),
        post  ("/agents/{id}/prune-confirmations", FleetPruneConfirm, prunes::confirm, "Agree to the removal that an agent refused")
            .body::<ConfirmPruneRequest>().one::<PruneConfirmation>().statuses(&[201]),
    ]
}

#[rustfmt::skip]
fn generator_rows() -> Vec<Route> {
    vec![
        get   ("/generators", FleetOwnRead, generators::list, "List generators").all::<Generator>().query(FILTERS),
        post  ("/generators", FleetGeneratorCreate, generators::create, "Create a generator, with its key")
            .create::<NewGenerator, CreateGeneratorResponse>(),
        get   ("/generators/{id}", FleetOwnRead, kind::get::<generator::Generator>, "Show a generator").one::<Generator>().query(&["show_deleted"]),
        put   ("/generators/{id}", FleetGeneratorUpdate, generators::update, "Change name or description of a generator")
            .body::<UpdateGenerator>().one::<Generator>().conditional(),
        delete("/generators/{id}", FleetGeneratorDelete, generators::delete, "Delete a generator, with its stacks and templates")
            .nothing().query(OPTIONS).query(&["keep"]).conditional(),
        post  ("/generators/{id}/rotate-pak", FleetKeyRotate, generators::rotate, "Replace the key of a generator")
            .one::<CreateGeneratorResponse>().statuses(&[201]),
        post  ("/generators/{id}/register", FleetAgentRegister, links::register, "An agent agrees to take stacks of a generator")
            .body::<AgentRegistrationBody>().one::<AgentGeneratorRegistration>().statuses(&[201]),
        delete("/generators/{id}/register", FleetAgentRegister, links::unregister, "An agent takes no stacks of a generator any more")
            .body::<AgentRegistrationBody>().nothing(),
        get   ("/generators/{id}/registered-agents", FleetOwnRead, links::of_generator, "List the agents that are registered with a generator")
            .all::<AgentGeneratorRegistration>().query(&["limit", "cursor"]),
    ]
}

#[rustfmt::skip]
fn stack_rows() -> Vec<Route> {
    vec![
        get   ("/stacks", FleetOwnRead, stacks::list, "List stacks").all::<Stack>().query(FILTERS).query(&["generator_id", "pak_id"]),
        post  ("/stacks", FleetStackCreate, stacks::create, "Create a stack").create::<NewStack, Stack>(),
        get   ("/stacks/{id}", FleetOwnRead, kind::get::<stack::Stack>, "Show a stack").one::<Stack>().query(&["show_deleted"]),
        put   ("/stacks/{id}", FleetStackUpdate, stacks::update, "Change name or description of a stack")
            .body::<UpdateStack>().one::<Stack>().conditional(),
        delete("/stacks/{id}", FleetStackDelete, stacks::delete, "Delete a stack; every agent that holds it is told to remove it")
            .nothing().query(OPTIONS).query(&["keep"]).conditional(),
        get   ("/stacks/{id}/labels", FleetRead, tags::labels::<StackId>, "List the labels of a stack").all::<StackLabel>(),
        post  ("/stacks/{id}/labels", FleetStackUpdate, tags::label::<StackId>, "Add a label to a stack; the body is the label")
            .body::<String>().one::<StackLabel>().statuses(&[201]),
        delete("/stacks/{id}/labels/{label}", FleetStackUpdate, tags::unlabel::<StackId>, "Remove a label of a stack").nothing(),
        get   ("/stacks/{id}/annotations", FleetRead, tags::annotations::<StackId>, "List the annotations of a stack").all::<StackAnnotation>(),
        post  ("/stacks/{id}/annotations", FleetStackUpdate, tags::annotate_stack, "Add an annotation to a stack")
            .body::<NewStackAnnotation>().one::<StackAnnotation>().statuses(&[201]),
        delete("/stacks/{id}/annotations/{key}", FleetStackUpdate, tags::unannotate::<StackId>, "Remove an annotation of a stack").nothing(),
        get   ("/stacks/{id}/strategy", FleetOwnRead, stacks::strategy, "Show how objects of a stack are rolled out").one::<RolloutStrategy>(),
        put   ("/stacks/{id}/strategy", FleetStackUpdate, stacks::set_strategy, "Roll objects of a stack out in waves, from the next one on")
            .body::<RolloutStrategy>().one::<RolloutStrategy>().conditional(),
        delete("/stacks/{id}/strategy", FleetStackUpdate, stacks::remove_strategy, "Bring objects of a stack to all agents at once").nothing().conditional(),
        get   ("/stacks/{id}/health", FleetOverview, reports::of_stack, "Show how healthy agents see the objects of a stack").one::<StackHealthResponse>(),
        get   ("/stacks/{id}/events", FleetOwnRead, overview::events, "Events of pods; this server collects none").one::<K8sEventHistoryResponse>().query(&["since", "limit"]),
        get   ("/stacks/{id}/logs", FleetOwnRead, overview::logs, "Logs of pods; this server collects none").one::<PodLogHistoryResponse>().query(&["since", "limit"]),
    ]
}

#[rustfmt::skip]
fn object_rows() -> Vec<Route> {
    vec![
        get   ("/stacks/{id}/deployment-objects", FleetObjectRead, objects::list, "List the objects of a stack, in the order of their numbers")
            .all::<DeploymentObject>().query(&["limit", "cursor"]),
        post  ("/stacks/{id}/deployment-objects", FleetObjectSubmit, objects::submit, "Submit an object, as JSON or as `application/yaml`, or a deletion marker")
            .create::<CreateDeploymentObjectRequest, DeploymentObject>().query(&["deletion_marker"]),
        post  ("/stacks/{id}/rollback", FleetObjectSubmit, objects::roll_back, "Submit the content of an older object again")
            .body::<RollBackStack>().one::<DeploymentObject>().statuses(&[201]),
        get   ("/deployment-objects/{id}", FleetObjectRead, objects::get, "Show an object, as JSON or as `application/yaml`").one::<DeploymentObject>(),
        delete("/deployment-objects/{id}", FleetObjectWithdraw, objects::withdraw, "Withdraw an object; the newest content that remains follows it").nothing(),
        get   ("/deployment-objects/{id}/health", FleetOverview, reports::of_object, "Show how healthy agents see an object").one::<DeploymentHealthResponse>(),
    ]
}

#[rustfmt::skip]
fn template_rows() -> Vec<Route> {
    vec![
        get   ("/templates", FleetOwnRead, templates::list, "List templates, each version").all::<StackTemplate>().query(FILTERS).query(&["generator_id"]),
        post  ("/templates", FleetTemplateCreate, templates::create, "Create a template").create::<CreateTemplateRequest, StackTemplate>(),
        get   ("/templates/{id}", FleetOwnRead, kind::get::<template::Template>, "Show a version of a template").one::<StackTemplate>().query(&["show_deleted"]),
        put   ("/templates/{id}", FleetTemplateUpdate, templates::revise, "Make the next version of a template")
            .body::<UpdateTemplateRequest>().one::<StackTemplate>().conditional(),
        delete("/templates/{id}", FleetTemplateDelete, templates::delete, "Delete a version of a template").nothing().query(OPTIONS).conditional(),
        post  ("/templates/{id}/render", FleetOwnRead, templates::render, "Show what a template makes of parameters; nothing is submitted")
            .body::<RenderTemplate>().one::<RenderedTemplate>().refuses(422),
        post  ("/stacks/{id}/deployment-objects/from-template", FleetObjectSubmit, templates::instantiate, "Submit what a template makes of parameters")
            .create::<TemplateInstantiationRequest, DeploymentObject>(),
        get   ("/templates/{id}/labels", FleetOwnRead, tags::labels::<TemplateId>, "List the labels of a template").all::<TemplateLabel>(),
        post  ("/templates/{id}/labels", FleetTemplateUpdate, tags::label::<TemplateId>, "Add a label to a template; the body is the label")
            .body::<String>().one::<TemplateLabel>().statuses(&[201]),
        delete("/templates/{id}/labels/{label}", FleetTemplateUpdate, tags::unlabel::<TemplateId>, "Remove a label of a template").nothing(),
        get   ("/templates/{id}/annotations", FleetOwnRead, tags::annotations::<TemplateId>, "List the annotations of a template").all::<TemplateAnnotation>(),
        post  ("/templates/{id}/annotations", FleetTemplateUpdate, tags::annotate_template, "Add an annotation to a template")
            .body::<AddAnnotationRequest>().one::<TemplateAnnotation>().statuses(&[201]),
        delete("/templates/{id}/annotations/{key}", FleetTemplateUpdate, tags::unannotate::<TemplateId>, "Remove an annotation of a template").nothing(),
    ]
}

#[rustfmt::skip]
fn overview_rows() -> Vec<Route> {
    vec![
        get   ("/stacks/{id}/explain", FleetOwnRead, explain::stack, "Explain a stack: which agents have it, which are behind, and why").one::<Explanation>(),
        get   ("/agents/{id}/explain", FleetRead, explain::agent, "Explain an agent: which stacks it has, with which it is behind, and why").one::<Explanation>(),
        get   ("/generators/{id}/explain", FleetOwnRead, explain::generator, "Explain a generator: with which stacks agents are behind").one::<Explanation>(),
        post  ("/auth/pak", FleetAuthenticate, principals::authenticate, "Show whom the key speaks for").one::<AuthResponse>(),
        get   ("/paks", KeyRead, principals::list, "List keys by name").all::<PakSummary>().query(&["limit", "cursor"]),
        get   ("/fleet", FleetOverview, overview::list, "Show how agents are doing").all::<FleetAgentRecord>().query(&["project", "pak_id"]),
        get   ("/agents/{id}/fleet-status", FleetRead, overview::get, "Show how an agent is doing").one::<AgentFleetStatusResponse>(),
        get   ("/agent-events", FleetOverview, reports::list, "List what agents reported, the newest first").all::<AgentEvent>().query(&["limit", "pak_id"]),
        get   ("/agent-events/{id}", FleetOverview, reports::get, "Show a report").one::<AgentEvent>(),
        get   ("/admin/audit-logs", AuditRead, audit::list, "List audit entries in the shape of Fleet's protocol").one::<AuditLogListResponse>()
            .query(&["actor_type", "actor_id", "action", "resource_type", "resource_id", "from", "to", "limit", "offset"]),
        get   ("/admin/ws/connections", FleetOverview, overview::connections, "List connections of agents; they poll, so there is none").one::<WsConnectionsResponse>(),
        get   ("/agents/{id}/work-orders/pending", FleetOffer, outside::none, "No work orders").all::<Value>().query(&["work_type"]),
        get   ("/agents/{id}/diagnostics/pending", FleetOffer, outside::none, "No diagnostics").all::<Value>(),
        get   ("/agents/{id}/webhooks/pending", FleetOffer, outside::none, "No webhooks").all::<Value>(),
    ]
}

/// What the protocol has and this server does not.
#[rustfmt::skip]
fn outside_rows() -> Vec<Route> {
    let nowhere = "Not offered";
    let rows = vec![
        post  ("/admin/config/reload", FleetRead, outside::refuse, nowhere),
        post  ("/deployment-objects/{id}/diagnostics", FleetRead, outside::refuse, nowhere),
        get   ("/diagnostics/{id}", FleetRead, outside::refuse, nowhere),
        post  ("/diagnostics/{id}/claim", FleetRead, outside::refuse, nowhere),
        post  ("/diagnostics/{id}/result", FleetRead, outside::refuse, nowhere),
        post  ("/webhook-deliveries/{id}/result", FleetRead, outside::refuse, nowhere),
        get   ("/webhooks", FleetRead, outside::refuse, nowhere),
        post  ("/webhooks", FleetRead, outside::refuse, nowhere),
        get   ("/webhooks/event-types", FleetRead, outside::refuse, nowhere),
        get   ("/webhooks/{id}", FleetRead, outside::refuse, nowhere),
        put   ("/webhooks/{id}", FleetRead, outside::refuse, nowhere),
        delete("/webhooks/{id}", FleetRead, outside::refuse, nowhere),
        get   ("/webhooks/{id}/deliveries", FleetRead, outside::refuse, nowhere),
        post  ("/webhooks/{id}/test", FleetRead, outside::refuse, nowhere),
        get   ("/work-order-log", FleetRead, outside::refuse, nowhere),
        get   ("/work-order-log/{id}", FleetRead, outside::refuse, nowhere),
        get   ("/work-orders", FleetRead, outside::refuse, nowhere),
        post  ("/work-orders", FleetRead, outside::refuse, nowhere),
        get   ("/work-orders/{id}", FleetRead, outside::refuse, nowhere),
        delete("/work-orders/{id}", FleetRead, outside::refuse, nowhere),
        post  ("/work-orders/{id}/claim", FleetRead, outside::refuse, nowhere),
        post  ("/work-orders/{id}/complete", FleetRead, outside::refuse, nowhere),
    ];
    rows.into_iter().map(Route::not_offered).collect()
}
