//! `PUT`: clients send back the document that they read, with what they want to change. What
//! cannot be changed this way has to be as it is.

use serde::de::DeserializeOwned;
use serde_json::Value;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::{FleetName, text as texts};
use slipway_core::time::Timestamp;

use crate::request::parse_json;

/// The fields of `settable`. Refuses any other field of the document that is not as it is;
/// `updated_at` tells when it was read, and counts for nothing.
pub(super) fn settable<T: DeserializeOwned>(
    body: &Value,
    now: &impl serde::Serialize,
    settable: &[&str],
) -> Result<T, Refusal> {
    let Some(given) = body.as_object() else {
        return Err(Refusal::new(ErrorKind::InvalidInput, "the body must be an object"));
    };
    let now = serde_json::to_value(now).unwrap_or_default();
    for (field, value) in given {
        let is_settable = settable.contains(&field.as_str()) || field == "updated_at";
        let Some(is) = now.get(field).filter(|_| !is_settable) else { continue };
        if !is_same(value, is) {
            let message = format!("`{field}` cannot be set; leave it out, or as it is");
            return Err(Refusal::new(ErrorKind::FieldNotSettable, message).at(field.clone()));
        }
    }
    parse_json(body.to_string().as_bytes())
}

/// A new name, if there is one.
pub(super) fn name(
    field: &'static str,
    given: Option<String>,
) -> Result<Option<FleetName>, Refusal> {
    Ok(given.map(|name| FleetName::parse(field, &name)).transpose()?)
}

/// A new description, also none; left as it is if the body does not have the field.
pub(super) fn description(
    body: &Value,
    given: Option<&str>,
) -> Result<Option<Option<String>>, Refusal> {
    let given = given.map(texts::description).transpose()?;
    Ok(body.get("description").map(|_| given))
}

/// Times are the same whatever their spelling.
fn is_same(one: &Value, other: &Value) -> bool {
    let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    one == other || matches!((time(one), time(other)), (Some(one), Some(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_can_be_set_may_differ() {
        let now = json!({
            "id": "1", "name": "web", "deleted_at": null,
            "created_at": "2026-01-31T12:00:00Z", "updated_at": "2026-01-31T12:00:00Z",
        });
        let put = |body: Value| settable::<Value>(&body, &now, &["name"]);
        let same = json!({
            "id": "1", "name": "shop", "deleted_at": null, "nobody_knows": 1,
            "created_at": "2026-01-31T12:00:00.000000Z", "updated_at": "2025-01-31T12:00:00Z",
        });
        assert_eq!(put(same).unwrap()["name"], "shop");
        for (field, value) in [
            ("id", json!("2")),
            ("deleted_at", json!("2026-01-31T12:00:00Z")),
            ("created_at", json!(null)),
        ] {
            let refusal = put(json!({ field: value })).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::FieldNotSettable);
            assert_eq!(refusal.field.as_deref(), Some(field));
        }
        assert!(put(json!([])).is_err());
    }
}
