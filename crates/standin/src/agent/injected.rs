//! Parses what a composite carries for its node, in each of the three forms.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::options::Options;

const HEADER: &str = "#cloud-config\n";
const CONFIG_PATH: &str = "/etc/plexd/config.yaml";
const TOKEN_PATH: &str = "/etc/plexd/bootstrap-token";

/// The configuration of a node. No `Debug`: it contains a token.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Injected {
    pub(crate) token: String,
    pub(crate) api_url: String,
    /// Only a cloud-init document has the next three. With the bearer token of
    /// generation A a node needs none of them to register.
    pub(crate) project_id: Option<String>,
    pub(crate) resource_handle: Option<String>,
    pub(crate) hostname: Option<String>,
    pub(crate) heartbeat: Duration,
    pub(crate) busy: Duration,
    /// The injected document, or an equivalent one.
    pub(crate) document: String,
}

#[derive(Deserialize)]
struct Document {
    write_files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    path: String,
    content: String,
}

#[derive(Default, Deserialize)]
struct Config {
    api_url: Option<String>,
    project_id: Option<String>,
    resource_handle: Option<String>,
    hostname: Option<String>,
    heartbeat_interval_ms: Option<u64>,
    busy_seconds: Option<u64>,
}

impl Injected {
    /// `None` as long as nothing usable is injected.
    pub(crate) fn of(composite: &Value, options: &Options) -> Option<Self> {
        let spec = &composite["spec"];
        if let Some(document) = spec["userData"].as_str() {
            return Self::of_document(document, options);
        }
        let name = composite["metadata"]["name"].as_str().unwrap_or_default();
        let helm = &spec["parameters"]["helmValues"];
        let secret = &spec["parameters"]["providerSecret"];
        let token = helm["bootstrapToken"].as_str().or(secret["bootstrapToken"].as_str())?;
        let api_url = helm["apiUrl"].as_str().or(options.api_url.as_deref())?;
        let heartbeat = options.heartbeat.unwrap_or(Duration::from_secs(1));
        // JSON is YAML.
        let config = json!({
            "api_url": api_url,
            "hostname": name,
            "heartbeat_interval_ms": u64::try_from(heartbeat.as_millis()).unwrap_or(u64::MAX),
        });
        let document = json!({ "write_files": [
            { "path": CONFIG_PATH, "permissions": "0644", "content": config.to_string() },
            { "path": TOKEN_PATH, "permissions": "0600", "content": token },
        ] });
        Some(Self {
            token: token.to_owned(),
            api_url: api_url.to_owned(),
            project_id: None,
            resource_handle: None,
            hostname: Some(name.to_owned()),
            heartbeat,
            busy: Duration::ZERO,
            document: format!("{HEADER}{document}\n"),
        })
    }

    fn of_document(document: &str, options: &Options) -> Option<Self> {
        let files: Document = serde_yaml_ng::from_str(document.strip_prefix(HEADER)?).ok()?;
        let content = |path: &str| {
            files.write_files.iter().find(|file| file.path == path).map(|file| &*file.content)
        };
        let config: Config = serde_yaml_ng::from_str(content(CONFIG_PATH)?).ok()?;
        let given = config.heartbeat_interval_ms.map(Duration::from_millis);
        Some(Self {
            token: content(TOKEN_PATH)?.trim().to_owned(),
            api_url: config.api_url.or_else(|| options.api_url.clone())?,
            project_id: config.project_id,
            resource_handle: config.resource_handle,
            hostname: config.hostname,
            heartbeat: options.heartbeat.or(given).unwrap_or(Duration::from_secs(1)),
            busy: Duration::from_secs(config.busy_seconds.unwrap_or_default()),
            document: document.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::{HEADER, Injected};
    use crate::options::Options;

    const URL: &str = "http://127.0.0.1:1";

    fn of(spec: &Value, api_url: Option<&str>) -> Option<Injected> {
        let options = Options { api_url: api_url.map(str::to_owned), ..Options::default() };
        Injected::of(&json!({ "metadata": { "name": "pr-1" }, "spec": spec }), &options)
    }

    #[test]
    fn a_cloud_init_document_says_everything() {
        let document = "#cloud-config\nwrite_files:\n- path: /etc/plexd/config.yaml\n  content: |\n    \
                        api_url: http://127.0.0.1:1\n    project_id: p\n    resource_handle: web-1\n    \
                        heartbeat_interval_ms: 250\n    busy_seconds: 3\n\
                        - path: /etc/plexd/bootstrap-token\n  content: |\n    secret\n";
        let injected = of(&json!({ "userData": document }), None).unwrap();
        assert_eq!((&*injected.token, &*injected.api_url), ("secret", URL));
        assert_eq!(injected.resource_handle.as_deref(), Some("web-1"));
        assert_eq!(injected.heartbeat, Duration::from_millis(250));
        assert_eq!(injected.busy, Duration::from_secs(3));
        assert_eq!(injected.document, document);
    }

    #[test]
    fn helm_values_say_where_and_a_provider_secret_does_not() {
        let helm = json!({ "parameters": { "helmValues": {
            "bootstrapToken": "secret", "apiUrl": URL, "plexdImage": "x",
        } } });
        assert_eq!(of(&helm, None).unwrap().api_url, URL);
        let secret = json!({ "parameters": { "providerSecret": { "bootstrapToken": "secret" } } });
        assert!(of(&secret, None).is_none());
        let injected = of(&secret, Some(URL)).unwrap();
        assert_eq!((&*injected.token, &*injected.api_url), ("secret", URL));
        assert_eq!(injected.project_id, None);

        // A real agent reads the document that we build.
        let again = of(&json!({ "userData": injected.document }), None).unwrap();
        assert!(injected.document.starts_with(HEADER));
        assert_eq!((again.token, again.api_url), (injected.token, injected.api_url));
    }

    #[test]
    fn nothing_injected_is_no_node() {
        for spec in [json!({}), json!({ "userData": "plain" }), json!({ "parameters": {} })] {
            assert!(of(&spec, Some(URL)).is_none(), "{spec}");
        }
    }
}
