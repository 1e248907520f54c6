//! Names beside ids in answers, and names and beginnings of ids in requests.

use serde_json::{Value, json};

use crate::nodes::enrolled;
use crate::world::{KEY, World};

fn text<'a>(document: &'a Value, field: &str) -> &'a str {
    document[field].as_str().unwrap_or_else(|| panic!("{field} of {document}"))
}

#[tokio::test]
async fn answers_name_what_they_refer_to() {
    let world = World::new().await;
    let (resource, node, _) = enrolled(&world, "web-1").await;
    let shown = world.get(&format!("/api/v1/resources/{resource}")).await.json();
    assert_eq!(shown["project"], "default");
    let listed = world.get("/api/v1/resources").await.json();
    assert_eq!(listed[0]["project"], "default");
    let tokens = world.get(&format!("/api/v1/resources/{resource}/tokens")).await.json();
    assert_eq!(tokens[0]["resource"], "web-1");

    let body = json!({ "name": "ci", "role": "viewer", "project": "default" });
    assert_eq!(world.create("/api/v1/keys", &body).await["project"], "default");
    let keys = world.get("/api/v1/keys").await.json();
    let admin = keys.as_array().unwrap().iter().find(|key| key["name"] == "admin").unwrap();
    assert!(admin.get("project").is_none(), "it reaches all of them: {admin}");

    let placed = world.get("/api/v1/cluster-assignments").await.json();
    assert_eq!(
        (&placed[0]["project"], &placed[0]["cluster"]),
        (&json!("default"), &json!("local"))
    );
    let credentials = world.get("/api/v1/credentials").await.json();
    assert_eq!(credentials[0]["cloud"], "local", "{credentials}");
    let usable = world.get("/api/v1/projects/default/credentials").await.json();
    assert_eq!(usable[0]["project"], "default");
    assert_eq!(usable[0]["credential"]["cloud"], "local");

    let path = format!("/api/v1/resources/{resource}?reason=done");
    let deletion = world.ask("DELETE", &path, KEY, "").await.json();
    assert_eq!((&deletion["target"], &deletion["target_id"]), (&json!("web-1"), &json!(resource)));
    let listed = world.get("/api/v1/deletions").await.json();
    assert_eq!(listed[0]["target"], "web-1");
    for member in listed[0]["members"].as_array().unwrap() {
        assert_eq!(member["name"], "web-1", "{member}");
    }

    let audit = world.get(&format!("/api/v1/audit?id={resource}")).await.json();
    assert!(!audit.as_array().unwrap().is_empty());
    for entry in audit.as_array().unwrap() {
        assert_eq!((&entry["subject"], &entry["project"]), (&json!("web-1"), &json!("default")));
    }
    let export = world.get("/api/v1/audit/export?kind=resource").await.text;
    let line: Value = serde_json::from_str(export.lines().next().unwrap()).unwrap();
    assert_eq!(line["subject"], "web-1");
    let by_node = world.get(&format!("/api/v1/audit?actor=node:{node}")).await.json();
    for entry in by_node.as_array().unwrap() {
        assert_eq!(entry["actor_name"], "web-1", "{entry}");
    }
}

#[tokio::test]
async fn a_name_or_the_beginning_of_an_id_will_do() {
    let world = World::new().await;
    let (resource, node, _) = enrolled(&world, "web-1").await;
    let body = json!({ "name": "ci", "role": "viewer" });
    let key = world.create("/api/v1/keys", &body).await;
    let rotated = world.post("/api/v1/keys/ci/rotate", "{}").await;
    assert_eq!((rotated.status.as_u16(), &rotated.json()["id"]), (200, &key["id"]));

    // All but the last digit: only one id begins so.
    let begun = |id: &str| id[..35].to_owned();
    for reference in ["web-1", &begun(&node), &node] {
        let found = world.get(&format!("/api/v1/nodes/{reference}")).await.json();
        assert_eq!(text(&found, "id"), node, "{reference}");
    }
    for reference in ["web-1", &begun(&resource)] {
        let found = world.get(&format!("/api/v1/resources/{reference}")).await.json();
        assert_eq!(text(&found, "id"), resource, "{reference}");
    }
    for list in ["projects", "clusters", "clouds", "credentials", "blueprints"] {
        let listed = world.get(&format!("/api/v1/{list}")).await.json();
        let ids: Vec<_> = listed.as_array().unwrap().iter().map(|one| text(one, "id")).collect();
        // The seeded ones differ only in their last digits.
        let begin_so =
            |length: usize| ids.iter().filter(|id| id.starts_with(&ids[0][..length])).count();
        let length = (4..).find(|length| begin_so(*length) == 1).unwrap();
        let found = world.get(&format!("/api/v1/{list}/{}", &ids[0][..length])).await.json();
        assert_eq!(text(&found, "id"), ids[0], "{list}");
    }
    let path = format!("/api/v1/resources/{}?reason=done", begun(&resource));
    let deletion = world.ask("DELETE", &path, KEY, "").await.json();
    let found = world.get(&format!("/api/v1/deletions/{}", begun(text(&deletion, "id")))).await;
    assert_eq!(found.json()["id"], deletion["id"]);

    for id in ["web-1", &begun(&resource)] {
        let audit = world.get(&format!("/api/v1/audit?id={id}")).await.json();
        let verbs: Vec<_> = audit.as_array().unwrap().iter().map(|one| &one["verb"]).collect();
        assert!(verbs.contains(&&json!("resource.delete")), "{id}: {verbs:?}");
        assert!(audit.as_array().unwrap().iter().all(|one| one["subject_id"] == resource));
    }
    let audit = world.get("/api/v1/audit?kind=api_key&id=ci").await.json();
    assert_eq!(audit[0]["subject_id"], key["id"]);
    world.get("/api/v1/audit?id=nothing").await.refused(404, "resource_not_found");
    world.get("/api/v1/keys/nobody").await.refused(404, "key_not_found");
    world.get("/api/v1/nodes/nobody").await.refused(404, "node_not_found");
}

#[tokio::test]
async fn a_beginning_that_fits_several_names_them_and_does_nothing() {
    let world = World::new().await;
    let (one, other) = (world.declare("web-1").await, world.declare("web-2").await);
    let common: String =
        one.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    assert!(common.len() >= 4, "ids of one time begin alike: {one} {other}");
    let refused = world.ask("DELETE", &format!("/api/v1/resources/{common}"), KEY, "").await;
    assert_eq!(refused.refused(400, "invalid_input").as_deref(), Some("id"));
    for part in ["web-1 of project default", "web-2 of project default", &one, &other] {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
    assert_eq!(world.get("/api/v1/deletions").await.json(), json!([]));
    // A key of another project learns nothing of them.
    world.create("/api/v1/projects", &json!({ "name": "shop" })).await;
    let body = json!({ "name": "shopper", "role": "viewer", "project": "shop" });
    let key = world.create("/api/v1/keys", &body).await;
    for reference in [common.as_str(), "web-1"] {
        let path = format!("/api/v1/resources/{reference}");
        world.ask("GET", &path, text(&key, "key"), "").await.refused(404, "resource_not_found");
    }
}

/// Filters and fields take what a path takes.
#[tokio::test]
async fn the_beginning_of_an_id_will_do_in_a_filter_and_in_a_field() {
    let world = World::new().await;
    // Apart from the seeded ones in more than the last digit.
    world.skip_ids();
    let project = world.create("/api/v1/projects", &json!({ "name": "shop" })).await;
    world.skip_ids();
    let body = json!({ "name": "hcloud", "provider": "hetzner" });
    let cloud = world.create("/api/v1/clouds", &body).await;
    world.skip_ids();
    let begun = |made: &Value| text(made, "id")[..35].to_owned();
    let (project_id, cloud_id) = (begun(&project), begun(&cloud));

    let of_cloud = json!({ "cloud": cloud_id, "name": "deploy", "kv_path": "a/b" });
    let credential = world.create("/api/v1/credentials", &of_cloud).await;
    assert_eq!(credential["cloud_id"], cloud["id"]);
    let listed = world.get(&format!("/api/v1/credentials?cloud={cloud_id}")).await.json();
    assert_eq!(listed[0]["id"], credential["id"]);

    let key = json!({ "name": "shopper", "role": "operator", "project": project_id });
    assert_eq!(world.create("/api/v1/keys", &key).await["project"], "shop");

    let whole = |list: Value, name: &str, field: &str| {
        let found = list.as_array().unwrap().iter().find(|one| one[field] == name).cloned();
        text(&found.unwrap(), "id").to_owned()
    };
    let cluster = whole(world.get("/api/v1/clusters").await.json(), "local", "name");
    let path = format!("/api/v1/projects/{project_id}/cluster");
    // The seeded ids differ only in their last digit, so that all but it fits several kinds,
    // and one cluster.
    let placing = json!({ "cluster": cluster[..35] }).to_string();
    let placed = world.ask("PUT", &path, KEY, &placing).await;
    assert_eq!((placed.status.as_u16(), &placed.json()["cluster"]), (200, &json!("local")));

    let seeded = whole(world.get("/api/v1/credentials").await.json(), "local", "name");
    world.ask("PUT", &format!("/api/v1/projects/shop/credentials/{seeded}"), KEY, "").await;
    let blueprint = whole(world.get("/api/v1/blueprints").await.json(), "local-node", "slug");
    let shortest = |id: &str, others: &Value| {
        let ids: Vec<_> = others.as_array().unwrap().iter().map(|one| text(one, "id")).collect();
        let fit =
            |length: usize| ids.iter().filter(|other| other[..length] == id[..length]).count();
        id[..(4..37).find(|length| fit(*length) == 1).unwrap()].to_owned()
    };
    let blueprint = shortest(&blueprint, &world.get("/api/v1/blueprints").await.json());
    let body = json!({
        "handle": "web-1", "project": project_id, "blueprint": blueprint, "credential": seeded[..35],
    });
    let declared = world.post("/api/v1/resources", &body.to_string()).await;
    assert_eq!(declared.status.as_u16(), 202, "{declared:?}");
    assert_eq!(declared.json()["project"], "shop");
    for path in ["resources", "audit"] {
        let listed = world.get(&format!("/api/v1/{path}?project={project_id}&limit=1")).await;
        assert_eq!(listed.json()[0]["project"], "shop", "{path}");
    }

    // One that fits several names the field and all of them; one that fits nothing is unknown.
    world.create("/api/v1/projects", &json!({ "name": "shop-2" })).await;
    world.create("/api/v1/projects", &json!({ "name": "shop-3" })).await;
    let several = &text(&project, "id")[..8];
    let refused = world.get(&format!("/api/v1/resources?project={several}")).await;
    assert_eq!(refused.refused(400, "invalid_input").as_deref(), Some("project"));
    assert!(refused.text.contains("shop-3"), "{}", refused.text);
    let body = json!({ "handle": "web-2", "blueprint": "local-node", "project": several });
    let refused = world.post("/api/v1/resources", &body.to_string()).await;
    assert_eq!(refused.refused(400, "invalid_input").as_deref(), Some("project"));
    world.get("/api/v1/resources?project=ffffff").await.refused(422, "project_not_found");
}

/// A name stays a name, also one that looks like the beginning of an id, and a key learns
/// nothing of credentials that its project may not use.
#[tokio::test]
async fn a_name_wins_over_a_beginning_and_a_beginning_is_within_reach() {
    let world = World::new().await;
    let cafe = world.create("/api/v1/projects", &json!({ "name": "cafe" })).await;
    let body = json!({ "name": "ci", "role": "operator", "project": "cafe" });
    let key = world.create("/api/v1/keys", &body).await;
    assert_eq!(key["project_id"], cafe["id"]);
    let listed = world.get("/api/v1/resources?project=cafe").await;
    assert_eq!(listed.json(), json!([]));
    let credentials = world.get("/api/v1/credentials").await.json();
    let begun = &text(&credentials[0], "id")[..35];
    let body = json!({ "handle": "web-1", "blueprint": "local-node", "credential": begun });
    let refused =
        world.ask("POST", "/api/v1/resources", text(&key, "key"), &body.to_string()).await;
    assert_eq!(refused.status.as_u16(), 422, "{refused:?}");
    assert!(!refused.text.contains(text(&credentials[0], "id")), "{}", refused.text);
}
