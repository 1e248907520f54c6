//! The content of the demo's stack, and what a site has of it, as one line of text:
//! `banner=2 page=2`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Where its objects go on a cluster, and the inventory of the agent there.
pub(super) const NAMESPACE: &str = "default";

/// Nothing is there.
pub(super) const NOTHING: &str = "nothing";

/// A version of the stack: the names of its objects, each with the version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Version {
    number: u32,
    names: [&'static str; 2],
}

pub(super) const FIRST: Version = Version { number: 1, names: ["page", "settings"] };
/// It changes one object, brings one and drops one.
pub(super) const SECOND: Version = Version { number: 2, names: ["banner", "page"] };

impl Version {
    /// The manifests; `run` is the beginning of their names, so that runs do not meet.
    pub(super) fn manifests(self, run: &str) -> String {
        let document = |name: &&str| {
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": { "name": format!("{run}-{name}"), "namespace": NAMESPACE },
                "data": { "version": self.number.to_string() },
            })
            .to_string()
        };
        self.names.iter().map(document).collect::<Vec<_>>().join("\n---\n")
    }

    /// What a site has that has exactly this.
    pub(super) fn line(self) -> String {
        let number = self.number;
        let named = self.names.iter().map(|name| ((*name).to_owned(), number.to_string()));
        line(&named.collect())
    }
}

/// One object of this run; `None` if it is none.
pub(super) fn entry(object: &Value, run: &str) -> Option<(String, String)> {
    let name = object["metadata"]["name"].as_str()?;
    let name = name.strip_prefix(run)?.strip_prefix('-')?;
    let data = &object["data"];
    let version =
        data["version"].as_str().filter(|_| data.as_object().is_some_and(|d| d.len() == 1));
    let is_expected = object["kind"] == "ConfigMap" && object["metadata"]["namespace"] == NAMESPACE;
    let shown = version.filter(|_| is_expected).map_or_else(|| object.to_string(), str::to_owned);
    Some((name.to_owned(), shown))
}

pub(super) fn line(entries: &BTreeMap<String, String>) -> String {
    if entries.is_empty() {
        return NOTHING.to_owned();
    }
    let shown = entries.iter().map(|(name, version)| format!("{name}={version}"));
    shown.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(manifests: &str, run: &str) -> String {
        let documents = manifests.split("\n---\n");
        let documents = documents.map(|one| serde_json::from_str::<Value>(one).unwrap());
        line(&documents.filter_map(|object| entry(&object, run)).collect())
    }

    #[test]
    fn the_line_says_exactly_what_is_there() {
        assert_eq!(read(&FIRST.manifests("demo-1"), "demo-1"), "page=1 settings=1");
        assert_eq!(read(&FIRST.manifests("demo-1"), "demo-1"), FIRST.line());
        assert_eq!(read(&SECOND.manifests("demo-1"), "demo-1"), SECOND.line());
        assert_eq!(read(&FIRST.manifests("demo-1"), "demo-2"), NOTHING, "another run");
        let more =
            FIRST.manifests("demo-1").replace(r#""version":"1""#, r#""version":"1","x":"y""#);
        assert_ne!(read(&more, "demo-1"), FIRST.line(), "more than the stack has");
    }
}
