//! A hash over JSON, independent of the order of keys and of formatting.

use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 over the value with sorted keys, in lowercase hex.
pub fn hash(value: &Value) -> String {
    let mut hasher = Sha256::new();
    feed(&mut hasher, value);
    HEXLOWER.encode(&hasher.finalize())
}

fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort();
            hasher.update(b"{");
            for key in keys {
                hasher.update(Value::String(key.clone()).to_string());
                feed(hasher, &map[key]);
            }
            hasher.update(b"}");
        }
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                feed(hasher, item);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        leaf => hasher.update(leaf.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn order_does_not_matter_and_content_does() {
        let left: Value = serde_json::from_str(r#"{"a":1,"b":[1,2]}"#).unwrap();
        let right: Value = serde_json::from_str(r#"{"b":[1,2],"a":1}"#).unwrap();
        assert_eq!(hash(&left), hash(&right));
        for other in [
            json!({"a": 2, "b": [1, 2]}),
            json!({"a": 1, "b": [2, 1]}),
            json!({"a": "1", "b": [1, 2]}),
            json!([]),
        ] {
            assert_ne!(hash(&left), hash(&other), "{other}");
        }
    }
}
