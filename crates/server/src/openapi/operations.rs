//! Every operation, in the order of the table of routes.

use slipway_wire::access::{
    ApiKey, ApiKeyWithText, AuditEntry, CreateKey, IssueToken, IssuedToken, RotateKey, Token,
};
use slipway_wire::api::{
    Control, DeclareResource, Deletion, Event, Explanation, ForceDrain, LoopStatus, Node, PlanLine,
    PutFreeze, Resource, ResourceDetail, Resume, Retry, Subscription,
};
use slipway_wire::catalog::{
    AssignCluster, Blueprint, BlueprintDelivery, BlueprintVersion, Cloud, Cluster,
    ClusterAssignment, CreateBlueprint, CreateCloud, CreateCluster, CreateCredential,
    CreateProject, Credential, CredentialAssignment, DefineLabel, LabelDefinition, Project,
    PublishVersion, Relabel, UpdateBlueprint, UpdateCloud, UpdateCredential, UpdateLabel,
    UpdateProject,
};
use slipway_wire::leaks::{Leak, LeakLook, LeakReason};

use super::operation::Operation as Op;

pub(super) fn operations() -> Vec<Op> {
    [resources(), access(), running(), catalog()].concat()
}

fn resources() -> Vec<Op> {
    const FILTERS: [&str; 6] = ["project", "handle", "phase", "label", "blocked", "show_deleted"];
    vec![
        Op::list::<Resource>("/resources", "List resources").with_query(&FILTERS),
        Op::create::<DeclareResource, Resource>("/resources", "Declare a resource")
            .answering(&[202]),
        Op::read::<ResourceDetail>("/resources/{id}", "Show a resource"),
        Op::change::<Resource>("PATCH", "/resources/{id}", "Replace the labels of a resource")
            .with_body::<Relabel>()
            .conditional(),
        Op::change::<Deletion>("DELETE", "/resources/{id}", "Delete a resource, in order")
            .with_query(&["reason"])
            .conditional()
            .answering(&[202]),
        Op::read::<Explanation>("/resources/{id}/explain", "Say why it is where it is"),
        Op::change::<Resource>("POST", "/resources/{id}/force-drain", "Do not wait for its node")
            .with_body::<ForceDrain>()
            .answering(&[202]),
        Op::change::<Resource>("POST", "/resources/{id}/retry", "Try again after a failure")
            .with_body::<Retry>()
            .answering(&[202]),
        Op::list::<Token>("/resources/{id}/tokens", "List the bootstrap tokens of a resource"),
        Op::create::<IssueToken, IssuedToken>(
            "/resources/{id}/tokens",
            "Issue a bootstrap token; its text is shown this once",
        ),
        Op::read::<Token>("/tokens/{id}", "Show a bootstrap token"),
        Op::quiet("DELETE", "/tokens/{id}", "Revoke a bootstrap token").with_query(&["reason"]),
        Op::read::<Explanation>(
            "/explain/{kind}/{reference}",
            "Say why a resource, node, deletion, project, cluster, token or leak is where it is",
        ),
        Op::list::<Node>("/nodes", "List nodes"),
        Op::read::<Node>("/nodes/{id}", "Show a node"),
        Op::list::<Deletion>("/deletions", "List deletions"),
        Op::read::<Deletion>("/deletions/{id}", "Show a deletion"),
    ]
}

fn access() -> Vec<Op> {
    const FILTERS: [&str; 7] = ["actor", "verb", "kind", "id", "project", "since", "until"];
    vec![
        Op::list::<AuditEntry>("/audit", "Read the audit, newest first").with_query(&FILTERS),
        Op::stream(
            "/audit/export",
            "application/x-ndjson",
            "Read all of the audit, oldest first, an entry a line",
        )
        .with_query(&FILTERS),
        Op::read::<ApiKey>("/whoami", "Show the key that is asking"),
        Op::list::<ApiKey>("/keys", "List API keys"),
        Op::create::<CreateKey, ApiKeyWithText>(
            "/keys",
            "Create an API key; its text is shown this once",
        ),
        Op::read::<ApiKey>("/keys/{id}", "Show an API key"),
        Op::change::<ApiKeyWithText>("POST", "/keys/{id}/rotate", "Give a key another text")
            .with_body::<RotateKey>()
            .conditional(),
        Op::quiet("DELETE", "/keys/{id}", "Revoke an API key")
            .with_query(&["reason"])
            .conditional(),
    ]
}

fn running() -> Vec<Op> {
    vec![
        Op::list::<Event>("/events", "List events in the order of their positions").refusing(410),
        Op::stream("/events/stream", "text/event-stream", "Follow events as they come")
            .with_query(&["after"])
            .refusing(410),
        Op::all::<Subscription>("/subscriptions", "List durable subscribers"),
        Op::quiet("DELETE", "/subscriptions/{name}", "Forget a subscriber"),
        Op::list::<Leak>("/leaks", "List what stands outside and no row claims, and the reverse")
            .with_query(&["state", "kind"]),
        Op::all::<LeakLook>("/leaks/find", "Look for leaks now").by_post(),
        Op::read::<Leak>("/leaks/{id}", "Show a leak"),
        Op::change::<Leak>("POST", "/leaks/{id}/resolve", "Say that a leak is settled")
            .with_body::<LeakReason>(),
        Op::change::<Leak>("POST", "/leaks/{id}/remove", "Remove what leaked")
            .with_body::<LeakReason>()
            .answering(&[200, 202]),
        Op::all::<LoopStatus>("/loops", "Show what the loops of this process do"),
        Op::read::<Control>("/control", "Show whether anything is acted on"),
        Op::change::<Control>("PUT", "/control/freeze", "Act on nothing until a moment")
            .with_body::<PutFreeze>(),
        Op::change::<Control>("DELETE", "/control/freeze", "Act again").with_query(&["reason"]),
        Op::change::<Control>("POST", "/control/resume", "Act on a restored database")
            .with_body::<Resume>(),
        Op::list::<PlanLine>("/control/plan", "Show what would be done"),
    ]
}

fn catalog() -> Vec<Op> {
    let mut operations = projects_and_clouds();
    operations.extend(blueprints_and_clusters());
    operations
}

fn projects_and_clouds() -> Vec<Op> {
    vec![
        Op::list::<Project>("/projects", "List projects").with_query(&["show_deleted"]),
        Op::create::<CreateProject, Project>("/projects", "Create a project"),
        Op::read::<Project>("/projects/{project}", "Show a project").with_query(&["show_deleted"]),
        Op::change::<Project>("PATCH", "/projects/{project}", "Change a project")
            .with_body::<UpdateProject>()
            .conditional(),
        Op::change::<Deletion>("DELETE", "/projects/{project}", "Delete an empty project")
            .with_query(&["reason"])
            .conditional(),
        Op::list::<CredentialAssignment>(
            "/projects/{project}/credentials",
            "List the credentials that a project may use",
        ),
        Op::quiet(
            "PUT",
            "/projects/{project}/credentials/{credential}",
            "Let a project use a credential",
        ),
        Op::quiet(
            "DELETE",
            "/projects/{project}/credentials/{credential}",
            "Do not let a project use a credential any more",
        ),
        Op::read::<ClusterAssignment>(
            "/projects/{project}/cluster",
            "Show on which cluster a project lives",
        ),
        Op::change::<ClusterAssignment>(
            "PUT",
            "/projects/{project}/cluster",
            "Place a project on a cluster",
        )
        .with_body::<AssignCluster>()
        .conditional(),
        Op::change::<ClusterAssignment>(
            "DELETE",
            "/projects/{project}/cluster",
            "Take a project that owns nothing off its cluster",
        )
        .conditional()
        .answering(&[202, 204]),
        Op::list::<Cloud>("/clouds", "List clouds").with_query(&["show_deleted"]),
        Op::create::<CreateCloud, Cloud>("/clouds", "Create a cloud"),
        Op::read::<Cloud>("/clouds/{cloud}", "Show a cloud").with_query(&["show_deleted"]),
        Op::change::<Cloud>("PATCH", "/clouds/{cloud}", "Change a cloud")
            .with_body::<UpdateCloud>()
            .conditional(),
        Op::change::<Deletion>("DELETE", "/clouds/{cloud}", "Delete a cloud")
            .with_query(&["reason"])
            .conditional(),
        Op::list::<Credential>("/credentials", "List credentials").with_query(&[
            "cloud",
            "name",
            "show_deleted",
        ]),
        Op::create::<CreateCredential, Credential>("/credentials", "Create a credential"),
        Op::read::<Credential>("/credentials/{id}", "Show a credential")
            .with_query(&["show_deleted"]),
        Op::change::<Credential>("PATCH", "/credentials/{id}", "Change where a credential lies")
            .with_body::<UpdateCredential>()
            .conditional(),
        Op::change::<Deletion>("DELETE", "/credentials/{id}", "Delete a credential")
            .with_query(&["reason"])
            .conditional(),
    ]
}

fn blueprints_and_clusters() -> Vec<Op> {
    vec![
        Op::list::<Blueprint>("/blueprints", "List blueprints"),
        Op::create::<CreateBlueprint, Blueprint>("/blueprints", "Create a blueprint"),
        Op::read::<Blueprint>("/blueprints/{blueprint}", "Show a blueprint"),
        Op::change::<Blueprint>("PATCH", "/blueprints/{blueprint}", "Describe a blueprint anew")
            .with_body::<UpdateBlueprint>()
            .conditional(),
        Op::list::<BlueprintVersion>(
            "/blueprints/{blueprint}/versions",
            "List the versions of a blueprint",
        ),
        Op::create::<PublishVersion, BlueprintVersion>(
            "/blueprints/{blueprint}/versions",
            "Publish a version; it never changes",
        ),
        Op::read::<BlueprintVersion>(
            "/blueprints/{blueprint}/versions/{version}",
            "Show a version of a blueprint",
        ),
        Op::change::<BlueprintVersion>(
            "POST",
            "/blueprints/{blueprint}/versions/{version}/retire",
            "Declare nothing new from a version",
        )
        .conditional(),
        Op::list::<BlueprintDelivery>(
            "/blueprints/{blueprint}/deliveries",
            "List where a blueprint is delivered, and the version found there",
        ),
        Op::list::<LabelDefinition>("/labels", "List label definitions"),
        Op::create::<DefineLabel, LabelDefinition>("/labels", "Define a label"),
        Op::read::<LabelDefinition>("/labels/{label}", "Show a label definition"),
        Op::change::<LabelDefinition>("PATCH", "/labels/{label}", "Change a label definition")
            .with_body::<UpdateLabel>()
            .conditional(),
        Op::quiet("DELETE", "/labels/{label}", "Delete a label definition").conditional(),
        Op::list::<Cluster>("/clusters", "List clusters"),
        Op::create::<CreateCluster, Cluster>("/clusters", "Register a cluster"),
        Op::read::<Cluster>("/clusters/{cluster}", "Show a cluster"),
        Op::list::<ClusterAssignment>("/cluster-assignments", "List which project lives where"),
    ]
}
