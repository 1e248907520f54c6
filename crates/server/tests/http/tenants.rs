//! Tenants: profiles, provisioning, jobs, decommissioning. The library runs jobs elsewhere;
//! here the tests write what its edges write.

use std::sync::Arc;

use serde_json::{Value, json};
use slipway_app::deletion::run::Runner;
use slipway_app::tenants::port::TenantKey;
use slipway_app::tenants::tasks::Tasks;
use slipway_core::access::audit::Actor;
use slipway_core::ids::TenantId;
use slipway_core::tenants::job::{Followed, JobState, follow};
use slipway_core::tenants::tenant::{Tenant, TenantSnapshot};
use sqlx::Connection as _;

use crate::world::{KEY, World};

/// The last job of the tenant ends in this way.
async fn end(world: &World, tenant: &str, to: &[JobState], error: &str) {
    let id: TenantId = tenant.parse().unwrap();
    let mut job = String::new();
    let mut rule = |snapshot: &TenantSnapshot| {
        let tenant = snapshot.tenant.as_ref().unwrap();
        job = tenant.job_id.to_string();
        let (from, to) = (tenant.state, to.to_vec());
        let version = Some("3".to_owned());
        let followed = Followed {
            job_id: tenant.job_id,
            from,
            to,
            version,
            leaked: Vec::new(),
            is_retry: false,
        };
        Ok(follow(tenant, &followed, &Actor::new("loop:tenants"), snapshot.now))
    };
    let store = world.context.stores.kind::<Tenant>();
    store.decide(&TenantKey::Kept(id), &mut rule).await.unwrap();
    let file = world.file.to_str().unwrap();
    let mut connection = sqlx::SqliteConnection::connect(file).await.unwrap();
    let state = to.last().unwrap().as_str();
    let ended = "UPDATE tenant_jobs SET state = $2, last_error = $3, due_at = NULL WHERE id = $1";
    let ended = sqlx::query(ended).bind(&job).bind(state).bind(error);
    assert_eq!(ended.execute(&mut connection).await.unwrap().rows_affected(), 1);
}

pub(crate) async fn fail(world: &World, tenant: &str) {
    end(world, tenant, &[JobState::Cleanup, JobState::Failed], "seed 2 is broken").await;
}

pub(crate) async fn ready(world: &World, tenant: &str) {
    use JobState::{Migrated, Ready, RoleCreated, SchemaCreated, Seeded};
    end(world, tenant, &[SchemaCreated, RoleCreated, Migrated, Seeded, Ready], "").await;
}

/// A roll-out migrates it, and that failed.
pub(crate) async fn stuck(world: &World, tenant: &str) {
    let id: TenantId = tenant.parse().unwrap();
    let file = world.file.to_str().unwrap();
    let mut connection = sqlx::SqliteConnection::connect(file).await.unwrap();
    let failed = "UPDATE tenants SET migrating = 1, last_error = 'state unknown' WHERE id = $1";
    let failed = sqlx::query(failed).bind(id.as_uuid());
    assert_eq!(failed.execute(&mut connection).await.unwrap().rows_affected(), 1);
}

/// Its target is ahead.
pub(crate) async fn target_ahead(world: &World, tenant: &str) {
    let tenants = &world.context.stores.tenants;
    let id: TenantId = tenant.parse().unwrap();
    let work = tenants.tenant_load(&[id]).await.unwrap()[0].work;
    assert!(tenants.tenant_task_wait(id, work, "the target is ahead").await.unwrap());
}

/// Carries out every due task, and lets the loop over deletions pass.
async fn converge(world: &World) {
    let tasks = Tasks::new(world.context.clone(), Arc::default());
    let runner = Runner::new(world.context.clone(), Arc::default());
    for _ in 0..3 {
        runner.pass().await.unwrap();
        let claimed = tasks.claim(10).await.unwrap();
        assert_eq!(tasks.work(&claimed).await, Vec::<String>::new());
    }
    runner.pass().await.unwrap();
}

async fn profile(world: &World) -> Value {
    let settings = json!({ "engine": "sqlite", "target": { "file": "/srv/secret-place" } });
    let body = json!({ "name": "files", "description": "small ones", "settings": settings });
    world.create("/api/v1/tenant-profiles", &body).await
}

async fn provision(world: &World, name: &str) -> String {
    let body = json!({ "name": name, "profile": "files" });
    let made = world.create("/api/v1/projects/default/tenants", &body).await;
    made["id"].as_str().unwrap().to_owned()
}

async fn key(world: &World, role: &str, project: Option<&str>) -> String {
    let name = format!("{role}-{}", project.unwrap_or("all"));
    let body = json!({ "name": name, "role": role, "project": project });
    let made = world.create("/api/v1/keys", &body).await;
    made["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn only_admins_see_where_tenants_live() {
    let world = World::new().await;
    let made = profile(&world).await;
    assert_eq!(made["settings"]["target"]["file"], "/srv/secret-place");
    let viewer = key(&world, "viewer", None).await;
    let of_project = key(&world, "admin", Some("default")).await;
    let seen = world.ask("GET", "/api/v1/tenant-profiles/files", &of_project, "").await;
    assert!(seen.text.contains("sqlite") && !seen.text.contains("secret-place"), "{seen:?}");
    for path in ["/api/v1/tenant-profiles", "/api/v1/tenant-profiles/files"] {
        let seen = world.ask("GET", path, &viewer, "").await;
        assert_eq!(seen.status.as_u16(), 200, "{seen:?}");
        assert!(!seen.text.contains("secret-place"), "{seen:?}");
        assert!(seen.text.contains("sqlite"), "{seen:?}");
    }
    world
        .ask("DELETE", "/api/v1/tenant-profiles/files", &viewer, "")
        .await
        .refused(403, "forbidden");
    let again = json!({ "name": "files", "settings": {} }).to_string();
    let taken = world.post("/api/v1/tenant-profiles", &again).await;
    assert_eq!(taken.refused(409, "name_taken").as_deref(), Some("name"));
    provision(&world, "acme").await;
    let delete = world.ask("DELETE", "/api/v1/tenant-profiles/files", KEY, "").await;
    delete.refused(409, "tenant_profile_in_use");
    let moved = json!({ "settings": { "engine": "postgres" } }).to_string();
    let moved = world.ask("PATCH", "/api/v1/tenant-profiles/files", KEY, &moved).await;
    let field = moved.refused(409, "tenant_profile_in_use");
    assert_eq!(field.as_deref(), Some("settings.engine"));
}

#[tokio::test]
async fn a_tenant_is_provisioned_once_and_names_its_job() {
    let world = World::new().await;
    profile(&world).await;
    let (path, body) = ("/api/v1/projects/default/tenants", r#"{"name":"acme","profile":"files"}"#);
    let header = ("idempotency-key", "once");
    let first = world.ask_with("POST", path, header, body).await;
    assert_eq!(first.status.as_u16(), 201, "{first:?}");
    let made = first.json();
    assert_eq!(
        first.header("location"),
        format!("/api/v1/tenants/{}", made["id"].as_str().unwrap())
    );
    assert_eq!((&made["state"], &made["profile"]), (&json!("pending"), &json!("files")));
    assert_eq!(world.ask_with("POST", path, header, body).await.json(), made, "the same answer");
    let busy = world.post(path, body).await;
    assert_eq!(busy.refused(409, "tenant_busy").as_deref(), Some("name"));
    assert_eq!(busy.json()["details"]["job_id"], made["job_id"], "{busy:?}");
    for (body, status, code, field) in [
        (r#"{"name":"b","profile":"none"}"#, 422, "tenant_profile_not_found", "profile"),
        (r#"{"name":"B!","profile":"files"}"#, 400, "invalid_input", "name"),
        (r#"{"name":"","profile":"files"}"#, 400, "invalid_input", "name"),
    ] {
        let refused = world.post(path, body).await;
        assert_eq!(refused.refused(status, code).as_deref(), Some(field), "{refused:?}");
    }
    let nowhere = world.post("/api/v1/projects/none/tenants", body).await;
    nowhere.refused(404, "project_not_found");
    let jobs = world.get("/api/v1/tenants/acme/jobs").await.json();
    assert_eq!((&jobs[0]["id"], &jobs[0]["state"]), (&made["job_id"], &json!("pending")));
    assert_eq!(jobs[0]["tenant"], "acme");
    let job = format!("/api/v1/tenant-jobs/{}", made["job_id"].as_str().unwrap());
    assert_eq!(world.get(&job).await.json()["tenant_id"], made["id"]);
    world.get("/api/v1/tenant-jobs/nonsense").await.refused(404, "job_not_found");
    world.get("/api/v1/tenants/nobody").await.refused(404, "tenant_not_found");
    // A key of another project sees none of it.
    world.create("/api/v1/projects", &json!({ "name": "other" })).await;
    let other = key(&world, "operator", Some("other")).await;
    let id = made["id"].as_str().unwrap();
    for path in [format!("/api/v1/tenants/{id}"), format!("/api/v1/tenants/{id}/jobs"), job] {
        assert_eq!(world.ask("GET", &path, &other, "").await.status.as_u16(), 404, "{path}");
    }
    assert_eq!(world.ask("GET", "/api/v1/tenants", &other, "").await.json(), json!([]));
    let same = json!({ "name": "acme", "profile": "files" }).to_string();
    let same = world.ask("POST", "/api/v1/projects/other/tenants", &other, &same).await.json();
    assert_ne!(same["target_name"], "acme", "two projects share the target: {same}");
}

#[tokio::test]
async fn a_failure_is_explained_and_tried_again() {
    let world = World::new().await;
    profile(&world).await;
    let id = provision(&world, "acme").await;
    let explained = world.get("/api/v1/explain/tenant/acme").await.json();
    assert_eq!(explained["waiting_for"], "a worker that claims it", "{explained}");
    world.post(&format!("/api/v1/tenants/{id}/retry"), "").await.refused(409, "nothing_to_retry");
    fail(&world, &id).await;
    let explained = world.get("/api/v1/explain/tenant/acme").await.json();
    assert!(explained["waiting_for"].as_str().unwrap().contains("slipway tenant retry acme"));
    assert_eq!(explained["failure"]["reason"], "seed 2 is broken", "{explained}");
    let job = world.get("/api/v1/tenants/acme").await.json()["job_id"].clone();
    let explained = world.get(&format!("/api/v1/explain/job/{}", job.as_str().unwrap())).await;
    assert_eq!(explained.json()["state"], "failed", "{explained:?}");
    let path = "/api/v1/projects/default/tenants";
    let again = world.post(path, r#"{"name":"acme","profile":"files"}"#).await;
    again.refused(409, "tenant_failed");
    let retried = world.post(&format!("/api/v1/tenants/{id}/retry"), "").await;
    assert_eq!(retried.status.as_u16(), 202, "{retried:?}");
    assert_eq!(retried.json()["state"], "pending");
    let jobs = world.get("/api/v1/tenants/acme/jobs").await.json();
    assert_eq!(jobs.as_array().unwrap().iter().filter(|one| one["retry_of"] == job).count(), 1);
    fail(&world, &id).await;
    let anything = world.post("/api/v1/tenants/retry", "{}").await;
    assert_eq!(anything.refused(400, "invalid_input").as_deref(), Some("project"));
    let many = world.post("/api/v1/tenants/retry", r#"{"project":"default"}"#).await.json();
    assert_eq!((&many["retried"], &many["refused"]), (&json!(["acme"]), &json!([])));
    let listed = world.get("/api/v1/tenants?state=failed").await.json();
    assert_eq!(listed, json!([]));
    let audit = world.get("/api/v1/audit?verb=tenant.advance").await;
    assert!(!audit.text.contains("seed 2"), "{audit:?}");
}

#[tokio::test]
async fn a_tenant_is_closed_kept_restored_and_destroyed() {
    let world = World::new().await;
    profile(&world).await;
    let id = provision(&world, "acme").await;
    let path = format!("/api/v1/tenants/{id}");
    world.ask("DELETE", &path, KEY, "").await.refused(409, "tenant_busy");
    ready(&world, &id).await;
    assert_eq!(world.get(&path).await.json()["version"], "3");
    let project = world.ask("DELETE", "/api/v1/projects/default?cascade=true", KEY, "").await;
    project.refused(409, "project_not_empty");
    // While it is scheduled nothing is touched.
    let later = world.ask("DELETE", &format!("{path}?grace=24h"), KEY, "").await.json();
    assert_eq!(later["state"], "scheduled", "{later}");
    converge(&world).await;
    assert_eq!(world.get(&path).await.json()["closed"], false);
    let cancel = format!("/api/v1/deletions/{}/cancel", later["id"].as_str().unwrap());
    assert_eq!(world.post(&cancel, "{}").await.json()["state"], "cancelled");
    let deleted = world.ask("DELETE", &path, KEY, "").await.json();
    assert_eq!(deleted["state"], "running", "{deleted}");
    converge(&world).await;
    let deletion = format!("/api/v1/deletions/{}", deleted["id"].as_str().unwrap());
    assert_eq!(world.get(&deletion).await.json()["state"], "done");
    assert_eq!(world.get(&path).await.status.as_u16(), 404);
    let kept = world.get(&format!("{path}?show_deleted=true")).await.json();
    assert_eq!((&kept["closed"], &kept["state"]), (&json!(true), &json!("ready")));
    let explained = world.get(&format!("/api/v1/explain/tenant/{id}")).await.json();
    assert_eq!(explained["state"], "decommissioned", "{explained}");
    // The name is free, and the target still has it.
    let second = provision(&world, "acme").await;
    let other = world.get(&format!("/api/v1/tenants/{second}")).await.json();
    assert_ne!(other["target_name"], kept["target_name"]);
    let back = world.post(&format!("{deletion}/restore"), "{}").await;
    back.refused(409, "restore_conflict");
    let back = world.post(&format!("{deletion}/restore"), r#"{"rename":"acme-old"}"#).await;
    assert_eq!(back.status.as_u16(), 200, "{back:?}");
    converge(&world).await;
    let restored = world.get(&path).await.json();
    assert_eq!((&restored["closed"], &restored["name"]), (&json!(false), &json!("acme-old")));
    assert_eq!(restored["target_name"], "acme", "its data is where it was");
    let deleted = world.ask("DELETE", &path, KEY, "").await.json();
    converge(&world).await;
    let purge = format!("/api/v1/deletions/{}/purge", deleted["id"].as_str().unwrap());
    let purged = world.post(&purge, r#"{"force":true,"reason":"over"}"#).await;
    assert!(purged.status.is_success(), "{purged:?}");
    converge(&world).await;
    let deletion = format!("/api/v1/deletions/{}", deleted["id"].as_str().unwrap());
    assert_eq!(world.get(&deletion).await.json()["state"], "purged");
    assert_eq!(world.get(&format!("{path}?show_deleted=true")).await.status.as_u16(), 404);
    let verbs = ["tenant.close", "tenant.reopen", "tenant.destroy"];
    for verb in verbs {
        let found = world.get(&format!("/api/v1/audit?verb={verb}&limit=1")).await.json();
        assert_eq!(found[0]["actor"], "loop:tenants", "{verb}: {found}");
    }
}

#[tokio::test]
async fn migrations_reach_the_tenants_of_a_profile_in_waves() {
    let world = World::new().await;
    profile(&world).await;
    let path = "/api/v1/tenant-profiles/files/migrate";
    world.post(path, "{}").await.refused(409, "rollout_empty");
    for name in ["c", "a", "b"] {
        let id = provision(&world, name).await;
        ready(&world, &id).await;
    }
    let waves = world.post(path, r#"{"strategy":{"waves":["env"]}}"#).await;
    assert_eq!(waves.refused(400, "invalid_input").as_deref(), Some("waves"));
    let none = world.post(path, r#"{"chunk":0}"#).await;
    assert_eq!(none.refused(400, "invalid_input").as_deref(), Some("chunk"));
    let dry = world.post(path, r#"{"dry_run":true}"#).await.json();
    let names: Vec<_> = dry["first"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["a", "b", "c"], "{dry}");
    let started = world.post(path, "{}").await;
    assert_eq!(started.status.as_u16(), 202, "{started:?}");
    world.post(path, "{}").await.refused(409, "rollout_under_way");
    world.post("/api/v1/rollouts/files/roll-back", "{}").await.refused(501, "not_offered");
    let runner = slipway_app::rollouts::run::Runner::new(world.context.clone(), Arc::default());
    let migrating = async || {
        let found = world.get("/api/v1/rollouts/files/members?state=changing").await.json();
        found.as_array().unwrap().len()
    };
    runner.pass().await.unwrap();
    assert_eq!(migrating().await, 1, "the canary alone");
    runner.pass().await.unwrap();
    assert_eq!(migrating().await, 1, "until it is migrated");
    for _ in 0..4 {
        converge(&world).await;
        runner.pass().await.unwrap();
    }
    let ended = world.get("/api/v1/rollouts/files").await.json();
    assert_eq!((&ended["state"], &ended["progress"]["healthy"]), (&json!("done"), &json!(3)));
    for name in ["a", "b", "c"] {
        let tenant = world.get(&format!("/api/v1/tenants/{name}")).await.json();
        assert_eq!(tenant["version"], "1", "{tenant}");
    }
}

/// A chunk ends before the next one begins, however many may be in work at the same time.
#[tokio::test]
async fn migrations_reach_the_tenants_in_chunks() {
    let world = World::new().await;
    profile(&world).await;
    for name in ["a", "b", "c", "d", "e"] {
        let id = provision(&world, name).await;
        ready(&world, &id).await;
    }
    let body = r#"{"chunk":2,"strategy":{"canary":1,"parallel":10}}"#;
    let started = world.post("/api/v1/tenant-profiles/files/migrate", body).await;
    assert_eq!(started.status.as_u16(), 202, "{started:?}");
    let runner = slipway_app::rollouts::run::Runner::new(world.context.clone(), Arc::default());
    let mut seen = Vec::new();
    for _ in 0..3 {
        runner.pass().await.unwrap();
        let path = "/api/v1/rollouts/files/members?state=changing";
        let found = world.get(path).await.json();
        let names = found.as_array().unwrap().iter().map(|one| one["name"].to_string());
        seen.push(names.collect::<Vec<_>>().join(" "));
        converge(&world).await;
        runner.pass().await.unwrap();
    }
    assert_eq!(seen, [r#""a""#, r#""b" "c""#, r#""d" "e""#]);
}

#[tokio::test]
async fn what_somebody_found_out_about_a_migration_goes_to_one_or_to_many() {
    let world = World::new().await;
    profile(&world).await;
    let (acme, globex) = (provision(&world, "acme").await, provision(&world, "globex").await);
    let path = format!("/api/v1/tenants/{acme}/repair");
    let body =
        |version: &str, found: &str| json!({ "version": version, "found": found }).to_string();
    world.post(&path, &body("7", "applied")).await.refused(409, "tenant_busy");
    for tenant in [&acme, &globex] {
        ready(&world, tenant).await;
    }
    for (version, found, field) in [("x", "applied", "version"), ("7", "perhaps", "found")] {
        let refused = world.post(&path, &body(version, found)).await;
        assert_eq!(refused.refused(400, "invalid_input").as_deref(), Some(field));
    }
    let accepted = world.post(&path, &body("7", "applied")).await;
    assert_eq!(accepted.status.as_u16(), 202, "{accepted:?}");
    converge(&world).await;
    world.relay().await;
    let events = world.get("/api/v1/events").await;
    assert!(events.text.contains("tenants.TenantRepaired"), "{events:?}");

    let many = r#"{"profile":"files","version":"7","found":"not_applied"}"#;
    let none = world.post("/api/v1/tenants/repair", many).await.json();
    assert_eq!(none["repaired"], json!([]), "no migration failed: {none}");
    stuck(&world, &globex).await;
    let one = world.post("/api/v1/tenants/repair", many).await.json();
    assert_eq!((&one["repaired"], &one["refused"]), (&json!(["globex"]), &json!([])), "{one}");
    // Also after the end of the roll-out that failed.
    stuck(&world, &acme).await;
    let mut connection =
        sqlx::SqliteConnection::connect(world.file.to_str().unwrap()).await.unwrap();
    let ended = sqlx::query("UPDATE tenants SET migrating = 0").execute(&mut connection).await;
    ended.unwrap();
    let one = world.post("/api/v1/tenants/repair", many).await.json();
    assert_eq!(one["repaired"], json!(["acme"]), "{one}");
    converge(&world).await;
    let none = world.post("/api/v1/tenants/repair", many).await.json();
    assert_eq!(none["repaired"], json!([]), "{none}");
}

/// The data of a tenant leaves the control plane only for an admin, and the audit has it.
#[tokio::test]
async fn only_admins_copy_a_tenant_and_each_copy_is_audited() {
    let world = World::new().await;
    profile(&world).await;
    let acme = provision(&world, "acme").await;
    let export = format!("/api/v1/tenants/{acme}/export");
    world.post(&export, "").await.refused(409, "tenant_busy");
    ready(&world, &acme).await;
    let operator = key(&world, "operator", None).await;
    world.ask("POST", &export, &operator, "").await.refused(403, "forbidden");
    for _ in 0..2 {
        let copy = world.post(&export, "").await;
        assert_eq!((copy.status.as_u16(), copy.text.as_str()), (200, "acme"), "{copy:?}");
    }
    let audit = world.get(&format!("/api/v1/audit?id={acme}&verb=tenant.export")).await.json();
    assert_eq!(audit.as_array().map(Vec::len), Some(2), "{audit}");
    let other = "/api/v1/tenants/0199a000-0000-7000-8000-000000000000/export";
    world.post(other, "").await.refused(404, "tenant_not_found");
}

/// A deep comparison builds something on the target.
#[tokio::test]
async fn only_operators_compare_deeply_and_not_during_a_freeze() {
    let world = World::new().await;
    profile(&world).await;
    let acme = provision(&world, "acme").await;
    ready(&world, &acme).await;
    let viewer = key(&world, "viewer", None).await;
    let (shallow, deep) = (
        format!("/api/v1/tenants/{acme}/drift"),
        format!("/api/v1/tenants/{acme}/drift?deep=true"),
    );
    assert_eq!(world.ask("GET", &shallow, &viewer, "").await.status.as_u16(), 200);
    world.ask("GET", &deep, &viewer, "").await.refused(403, "forbidden");
    assert_eq!(world.get(&deep).await.status.as_u16(), 200);
    let frozen = world.ask("PUT", "/api/v1/control/freeze", KEY, r#"{"reason":"test"}"#).await;
    assert!(frozen.status.is_success(), "{frozen:?}");
    assert_eq!(world.get(&deep).await.refused(503, "unavailable").as_deref(), Some("deep"));
    assert_eq!(world.get(&shallow).await.status.as_u16(), 200);
}
