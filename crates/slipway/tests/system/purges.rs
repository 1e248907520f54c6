//! Purging by the loop, with the real binary on each database.

use reqwest::Method;
use serde_json::json;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};

/// What is past its retention goes by itself, across a crash, and is announced once.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_past_its_retention_is_purged_across_a_crash() {
    for mut plane in ControlPlane::each("what_is_past_its_retention_is_purged").await {
        plane.start().await;
        let setting = "/api/v1/deletion-settings/-/cloud";
        let (status, set) =
            plane.call(Method::PUT, setting, Some(json!({ "retention_seconds": 0 }))).await;
        assert_eq!(status, 200, "{set}");
        let body = json!({ "name": "east", "provider": "p" });
        let (status, cloud) = plane.call(Method::POST, "/api/v1/clouds", Some(body.clone())).await;
        assert_eq!(status, 201, "{cloud}");
        let path = format!("/api/v1/clouds/{}", cloud["id"].as_str().unwrap());
        let (status, deletion) = plane.call(Method::DELETE, &path, None).await;
        assert_eq!(status, 200, "{deletion}");
        plane.kill();
        plane.start().await;
        let id = deletion["id"].as_str().unwrap().to_owned();
        let record = format!("/api/v1/deletions/{id}");
        wait::until(TIMEOUT, "the deletion to be purged", async || {
            let found = plane.get(&record).await;
            if found["state"] == "purged" { Ok(()) } else { Err(found.to_string()) }
        })
        .await;
        let (status, _) = plane.call(Method::GET, &format!("{path}?show_deleted=true"), None).await;
        assert_eq!(status, 404, "its row is gone");
        let (status, again) = plane.call(Method::POST, "/api/v1/clouds", Some(body)).await;
        assert_eq!(status, 201, "its name is free: {again}");
        let of_deletion = async || {
            let events = plane.events().await.into_iter();
            events.filter(|(of, _)| *of == id).map(|(_, kind)| kind).collect::<Vec<_>>()
        };
        wait::until(TIMEOUT, "the events to be relayed", async || of_deletion().await.len() >= 3)
            .await;
        assert_eq!(of_deletion().await, ["deletion.Done", "deletion.Purging", "deletion.Purged"]);
        plane.stop().await;
    }
}
