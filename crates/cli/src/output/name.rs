//! `-o name`: what a document is called, as `KIND/NAME`.

use serde::Serialize;
use serde_json::Value;

/// The fields that may have the name, the one that people use first.
const NAMES: [&str; 6] = ["handle", "name", "slug", "hostname", "key", "id"];

/// What has no name of its own, only the name of what it is about.
const BY_ID: [&str; 4] = ["deletion", "leak", "token", "protection"];

/// `resource/web-1`; `None` for what has no name.
pub(crate) fn name_of(kind: &str, document: &impl Serialize) -> Option<String> {
    if kind.is_empty() {
        return None;
    }
    let document = serde_json::to_value(document).ok()?;
    let names = if BY_ID.contains(&kind) { &NAMES[5..] } else { &NAMES[..] };
    let name = names.iter().find_map(|field| document.get(field).and_then(Value::as_str))?;
    Some(format!("{kind}/{}", crate::terminal::clean(name)))
}

/// The kind of a list: `resource` for `resources`.
pub(crate) fn singular(noun: &str) -> String {
    let noun = noun.split(' ').next().unwrap_or(noun);
    noun.strip_suffix('s').unwrap_or(noun).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_what_people_type() {
        let kind = singular("resources that can be read");
        assert_eq!(
            name_of(&kind, &json!({ "id": "1", "handle": "web-1" })).unwrap(),
            "resource/web-1"
        );
        assert_eq!(name_of("key", &json!({ "key": "secret", "name": "ci" })).unwrap(), "key/ci");
        assert_eq!(
            name_of("deletion", &json!({ "name": "web-1", "id": "7" })).unwrap(),
            "deletion/7"
        );
        assert_eq!(name_of("history", &json!({ "at": "now" })), None);
        assert_eq!(name_of("", &json!({ "name": "ci" })), None);
    }
}
