//! The mode over HTTP.

use serde_json::{Value, json};

use crate::world::{KEY, World};

#[tokio::test]
async fn the_mode_is_shown_changed_and_refused_by_field() {
    let world = World::new().await;
    let control = world.get("/api/v1/control").await.json();
    assert_eq!((&control["mode"], &control["settled"]), (&json!("acting"), &json!(true)));
    assert_eq!((&control["freeze"], &control["replicas"]), (&Value::Null, &json!([])));

    let put = async |body: &str| world.ask("PUT", "/api/v1/control/freeze", KEY, body).await;
    let wrong = put(r#"{"reason":"x","for_seconds":700000}"#).await;
    assert_eq!(wrong.refused(400, "invalid_input").as_deref(), Some("for_seconds"));
    let wrong = put(r#"{"reason":"","for_seconds":60}"#).await;
    assert_eq!(wrong.refused(400, "invalid_input").as_deref(), Some("reason"));
    put(r#"{"reason":"x","until":"tomorrow"}"#).await.refused(400, "invalid_input");
    put(r#"{"reason":"x","for_seconds":-1}"#).await.refused(400, "invalid_input");

    let frozen = put(r#"{"reason":"a storm"}"#).await;
    assert_eq!(frozen.status.as_u16(), 200, "{frozen:?}");
    let frozen = frozen.json();
    assert_eq!(frozen["mode"], "frozen");
    assert_eq!(frozen["freeze"]["by"], "key:admin");
    assert_eq!(frozen["freeze"]["reason"], "a storm");

    let resume = r#"{"reason":"x"}"#;
    world.ask("POST", "/api/v1/control/resume", KEY, resume).await.refused(409, "nothing_to_lift");
    let lift = |query: &str| format!("/api/v1/control/freeze{query}");
    let wrong = world.ask("DELETE", &lift(""), KEY, "").await;
    assert_eq!(wrong.refused(400, "invalid_input").as_deref(), Some("reason"));
    let lifted = world.ask("DELETE", &lift("?reason=over"), KEY, "").await.json();
    assert_eq!(lifted["mode"], "acting");
    world.ask("DELETE", &lift("?reason=over"), KEY, "").await.refused(409, "nothing_to_lift");

    let plan = world.get("/api/v1/control/withheld").await;
    assert_eq!((plan.json(), plan.header("slipway-withheld-unchecked")), (json!([]), "0"));
}
