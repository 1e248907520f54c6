//! Explanations over HTTP: every kind in one shape.

use serde_json::Value;
use slipway_core::access::role::Role;
use slipway_core::operations::explanation::ExplainedKind;

use crate::world::{KEY, World};

async fn explained(world: &World, kind: &str, id: &str) -> Value {
    let answer = world.get(&format!("/api/v1/explain/{kind}/{id}")).await;
    assert_eq!(answer.status.as_u16(), 200, "{kind}: {answer:?}");
    let found = answer.json();
    assert_eq!(found["kind"], kind);
    for text in ["id", "name", "state", "since", "next"] {
        assert!(found[text].as_str().is_some_and(|text| !text.is_empty()), "{kind}: {found}");
    }
    for list in ["blockers", "parts", "history"] {
        assert!(found[list].is_array(), "{kind}: {found}");
    }
    found
}

#[tokio::test]
async fn everything_is_explained_in_one_shape() {
    let world = World::new().await;
    let id = world.declare("web-1").await;
    let resource = explained(&world, "resource", &id).await;
    assert!(resource["waiting_for"].is_string() && resource["deadline"].is_string(), "{resource}");
    let same = world.get(&format!("/api/v1/resources/{id}/explain")).await.json();
    assert_eq!((&same["id"], &same["next"]), (&resource["id"], &resource["next"]));

    let text = world.mint_token(&id).await;
    let tokens = world.get(&format!("/api/v1/resources/{id}/tokens")).await.json();
    let token = explained(&world, "token", tokens[0]["token_id"].as_str().unwrap()).await;
    assert_eq!(
        (token["state"].as_str(), token["parts"][0]["name"].as_str()),
        (Some("usable"), Some("web-1 attempt 1"))
    );
    let body = serde_json::json!({
        "token": text, "public_key": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
    });
    let node = world.ask("POST", "/v1/register", "", &body.to_string()).await.json();
    let node = explained(&world, "node", node["node_id"].as_str().unwrap()).await;
    assert_eq!(node["state"], "registered");
    let deleted = world.ask("DELETE", &format!("/api/v1/resources/{id}"), KEY, "").await.json();
    let deletion = explained(&world, "deletion", deleted["id"].as_str().unwrap()).await;
    assert!(deletion["waiting_for"].as_str().unwrap().contains("node"), "{deletion}");
    assert_eq!(deletion["parts"].as_array().unwrap().len(), 2);

    let project = explained(&world, "project", "default").await;
    assert_eq!(project["facts"]["attempts"], 1);
    explained(&world, "cluster", "local").await;
}

#[tokio::test]
async fn what_cannot_be_explained_is_refused_by_field() {
    let world = World::new().await;
    let answer = world.get("/api/v1/explain/ship/x").await;
    assert_eq!(answer.refused(400, "invalid_input").as_deref(), Some("kind"));
    let answer = world.get("/api/v1/explain/node/web-1").await;
    assert_eq!(answer.refused(400, "invalid_input").as_deref(), Some("id"));
    let unknown = "0192f0c1-2b3c-7d4e-8f50-123456789abc";
    for kind in ExplainedKind::ALL {
        let name =
            if *kind == ExplainedKind::Attempt { "provisioned_resource" } else { kind.as_str() };
        for reference in [unknown, "ffff0000"] {
            let answer = world.get(&format!("/api/v1/explain/{kind}/{reference}")).await;
            answer.refused(404, &format!("{name}_not_found"));
        }
    }
    for reference in [unknown, "ffff0000", "web-1"] {
        let answer = world.get(&format!("/api/v1/explain/{reference}")).await;
        answer.refused(404, "resource_not_found");
    }
}

/// Whatever somebody has in hand: a handle, any id, or enough of it.
#[tokio::test]
async fn any_id_leads_to_its_explanation() {
    let world = World::new().await;
    let id = world.declare("web-1").await;
    let shown = world.get(&format!("/api/v1/resources/{id}")).await.json();
    let attempt = shown["attempt"]["id"].as_str().unwrap();
    let project = shown["project_id"].as_str().unwrap();
    let text = world.mint_token(&id).await;
    let tokens = world.get(&format!("/api/v1/resources/{id}/tokens")).await.json();
    let token = tokens[0]["token_id"].as_str().unwrap();
    let body = serde_json::json!({
        "token": text, "public_key": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
    });
    let node = world.ask("POST", "/v1/register", "", &body.to_string()).await.json();
    let node = node["node_id"].as_str().unwrap();
    let deleted = world.ask("DELETE", &format!("/api/v1/resources/{id}"), KEY, "").await.json();
    let deletion = deleted["id"].as_str().unwrap();
    let cluster = explained(&world, "cluster", "local").await;
    let cluster = cluster["id"].as_str().unwrap();
    for (given, kind, of) in [
        (id.as_str(), "resource", id.as_str()),
        ("web-1", "resource", &id),
        // The current attempt is explained as its resource.
        (attempt, "resource", &id),
        (node, "node", node),
        (deletion, "deletion", deletion),
        (token, "token", token),
        (project, "project", project),
        (cluster, "cluster", cluster),
    ] {
        let answer = world.get(&format!("/api/v1/explain/{given}")).await.json();
        assert_eq!((&answer["kind"], &answer["id"]), (&kind.into(), &of.into()), "{given}");
        if given == "web-1" {
            continue;
        }
        let kind = if given == attempt { "attempt" } else { kind };
        let begun = &given[..given.len() - 1];
        let answer = world.get(&format!("/api/v1/explain/{kind}/{begun}")).await.json();
        assert_eq!(answer["id"], of, "{kind} {begun}: it is the only {kind}");
    }
    // The name of its composite.
    for path in ["explain", "explain/attempt"] {
        let answer = world.get(&format!("/api/v1/{path}/pr-{attempt}")).await.json();
        assert_eq!(answer["id"], id, "{path}");
    }
    let audit = world.get(&format!("/api/v1/audit?id=pr-{attempt}")).await.json();
    assert_eq!(audit, world.get(&format!("/api/v1/audit?id={attempt}")).await.json());
    world.skip_ids();
    let body = serde_json::json!({ "name": "alone" });
    let alone = world.create("/api/v1/projects", &body).await["id"].clone();
    world.skip_ids();
    let begun = alone.as_str().unwrap().strip_suffix(|_: char| true).unwrap();
    let answer = world.get(&format!("/api/v1/explain/{begun}")).await.json();
    assert_eq!((&answer["kind"], &answer["id"]), (&"project".into(), &alone), "{begun}");

    // All ids here begin so.
    let several = world.get(&format!("/api/v1/explain/{}", &id[..4])).await;
    assert_eq!(several.refused(400, "invalid_input").as_deref(), Some("reference"));
    let found = several.json()["details"]["found"].as_array().unwrap().len();
    assert!(found > 3, "{several:?}");
}

/// Foreign objects answer like missing ones, and a cluster shows only the
/// caller's own project on it.
#[tokio::test]
async fn a_bound_key_is_explained_its_own_and_nothing_else() {
    let world = World::new().await;
    for project in ["own", "foreign"] {
        world.project(project).await;
    }
    world.skip_ids();
    let mine = world.declare_in("own", "a").await;
    world.skip_ids();
    let theirs = world.declare_in("foreign", "a").await;
    let (_, key) = world.key("bound", Role::Viewer, Some("own")).await;
    let ask =
        async |path: &str| world.ask("GET", &format!("/api/v1/explain/{path}"), &key, "").await;
    assert_eq!(ask(&format!("resource/{mine}")).await.status.as_u16(), 200);
    ask(&format!("resource/{theirs}")).await.refused(404, "resource_not_found");
    ask("project/foreign").await.refused(404, "project_not_found");
    assert_eq!(ask("cluster/local").await.json()["facts"]["attempts"], 1);
    // Neither by its id nor by the beginning of it.
    for reference in [theirs.as_str(), &theirs[..35]] {
        ask(reference).await.refused(404, "resource_not_found");
    }
    assert_eq!(ask("a").await.json()["id"], mine, "the handle in the foreign project is unknown");
    let fitting = ask(&mine[..4]).await.json()["details"]["found"].to_string();
    assert!(fitting.contains(&mine) && !fitting.contains(&theirs), "{fitting}");
    let leak = "leak/0192f0c1-2b3c-7d4e-8f50-123456789abc";
    ask(leak).await.refused(403, "forbidden");
}
