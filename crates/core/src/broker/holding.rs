//! What holds a teardown: the objects of a composite that are still there while it is being
//! deleted, who holds each of them, and whether it can be told to keep what it stands for
//! in the cloud.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::text::storable;

/// The finalizer of every managed resource, which its provider removes.
pub const FINALIZER_MANAGED: &str = "finalizer.managedresource.crossplane.io";

/// Objects that one observation names, at most.
pub const HOLDERS_MAX: usize = 20;

/// Characters of a message that are shown, at most.
const SHOWN_TEXT: usize = 400;

/// An object on a cluster, by all that a request about it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideObject {
    pub api_version: String,
    pub kind: String,
    pub plural: String,
    /// `None` for an object of cluster scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
    pub uid: String,
}

impl OutsideObject {
    /// As people write it: `Server shop/web-1`.
    pub fn shown(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind, self.name),
            None => format!("{} {}", self.kind, self.name),
        }
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// The last error of the provider, in its own words without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderError {
    pub reason: Option<String>,
    pub message: String,
    /// Since when the condition says so, as the object has it.
    pub at: Option<String>,
}

/// Whether a managed resource can be told to keep its external object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keepable {
    Yes,
    /// It will keep it already, whoever said so.
    Already,
    /// Why not.
    No(String),
}

/// An object that is still there while its composite is being deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub object: OutsideObject,
    /// What it belongs to, from the composite down: `XServer pr-1 → Server s-1`.
    pub owners: String,
    /// Whether its own deletion has begun.
    pub terminating: bool,
    pub finalizers: Vec<String>,
    /// The name of what it stands for in the cloud.
    pub external_name: Option<String>,
    /// The name of its ProviderConfig.
    pub provider_config: Option<String>,
    pub error: Option<ProviderError>,
    pub keepable: Keepable,
}

impl Holder {
    /// As a part of its composite: `Server/s-1`, and what it is called in its cloud.
    pub fn composed(&self) -> String {
        let OutsideObject { kind, name, .. } = &self.object;
        match &self.external_name {
            Some(external) => format!("{kind}/{name} (in its cloud: {external})"),
            None => format!("{kind}/{name}"),
        }
    }

    /// Whether its own deletion has begun and does not end. One that cannot be read counts.
    pub fn is_held(&self) -> bool {
        self.terminating && (!self.finalizers.is_empty() || self.object.uid.is_empty())
    }

    /// Whether it stands for an object in a cloud.
    pub fn is_managed(&self) -> bool {
        self.finalizers.iter().any(|name| name == FINALIZER_MANAGED)
    }

    /// Who has to let it go, by the names of its finalizers.
    pub fn held_by(&self) -> Option<String> {
        let first = self.finalizers.first()?;
        let owner = match first.as_str() {
            FINALIZER_MANAGED => match &self.provider_config {
                Some(config) => {
                    format!("the provider of {} (ProviderConfig {config})", self.object.group())
                }
                None => format!("the provider of {}", self.object.group()),
            },
            "composite.apiextensions.crossplane.io" => "Crossplane".to_owned(),
            "foregroundDeletion" => {
                "the garbage collector of Kubernetes, until what it owns is gone".to_owned()
            }
            "slipway.dev/drain" => "Slipway".to_owned(),
            name if name.starts_with("in-use.crossplane.io") || name.contains("usage") => {
                "a Usage of Crossplane".to_owned()
            }
            _ => "whoever set it".to_owned(),
        };
        Some(format!("{owner}: finalizer {}", self.finalizers.join(", ")))
    }

    /// For people, in an explanation or an answer.
    pub fn document(&self) -> Value {
        let mut document = json!({
            "object": self.object.shown(),
            "owner": self.owners,
            "terminating": self.terminating,
        });
        let error = self.error.as_ref();
        let facts = [
            ("held_by", self.held_by()),
            ("external_name", self.external_name.clone()),
            ("provider_error", error.map(|error| error.message.clone())),
            ("provider_reason", error.and_then(|error| error.reason.clone())),
            ("provider_error_since", error.and_then(|error| error.at.clone())),
        ];
        for (name, value) in facts {
            if let Some(value) = value {
                document[name] = json!(value);
            }
        }
        match &self.keepable {
            Keepable::Yes => {}
            Keepable::Already => document["kept"] = json!("it keeps its external object"),
            Keepable::No(reason) => document["not_orphanable"] = json!(reason),
        }
        if self.is_managed() && self.is_held() && self.keepable != Keepable::Already {
            document["retry"] = json!(self.retry());
        }
        document
    }

    /// The command that makes the provider try at once: it reconciles when an annotation
    /// changes, and otherwise when its backoff ends.
    fn retry(&self) -> String {
        let OutsideObject { plural, namespace, name, .. } = &self.object;
        let namespace = namespace.as_ref().map(|name| format!(" -n {name}")).unwrap_or_default();
        let group = self.object.group();
        format!(
            "kubectl annotate {plural}.{group} {name}{namespace} --overwrite crossplane.io/reconcile-requested-at=$(date +%s)"
        )
    }
}

/// A command that finds what has this external name in its cloud; `None` where the API
/// group of the managed resource does not say which cloud that is.
pub fn find_command(object: &OutsideObject, external_name: &str) -> Option<String> {
    let name = quoted(external_name);
    let within = |cloud: &str| object.group().split('.').any(|part| part == cloud);
    let kind = object.kind.to_lowercase();
    if within("hcloud") || within("hetzner") {
        return Some(format!("hcloud {kind} describe {name}"));
    }
    if within("aws") {
        let text = "aws resourcegroupstaggingapi get-resources --output text";
        return Some(format!("{text} | grep -F -- {name}"));
    }
    if within("gcp") {
        return Some(format!("gcloud asset search-all-resources --query=name:{name}"));
    }
    if within("azure") {
        return Some(format!("az resource list --output tsv | grep -F -- {name}"));
    }
    None
}

/// One word of a shell, whatever is in it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:/@-".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// A message of a provider, without what may be a secret, and bounded. Clouds put requests
/// into their errors, and those may carry a token or a signature.
pub fn cleaned(message: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut hidden_next = false;
    for word in message.split_whitespace() {
        let (shown, names_a_secret) = word_without_secret(word);
        words.push(if hidden_next { hidden(word) } else { shown });
        hidden_next = names_a_secret;
        // Longer than any that is shown: the rest need not be read.
        if words.len() > SHOWN_TEXT {
            break;
        }
    }
    let text = storable(&words.join(" "));
    match text.char_indices().nth(SHOWN_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

const SECRET: &str = "[hidden]";

fn hidden(word: &str) -> String {
    // `Authorization: Bearer x` hides the scheme with its value.
    let scheme = ["bearer", "basic", "digest"].contains(&word.to_ascii_lowercase().as_str());
    if scheme { word.to_owned() } else { SECRET.to_owned() }
}

/// The word as it is shown, and whether it says that the next one is a secret.
fn word_without_secret(word: &str) -> (String, bool) {
    const NAMES: [&str; 9] = [
        "token",
        "secret",
        "password",
        "passwd",
        "apikey",
        "api_key",
        "api-key",
        "authorization",
        "signature",
    ];
    let lower = word.to_ascii_lowercase();
    if ["bearer", "basic"].contains(&lower.as_str()) {
        return (word.to_owned(), true);
    }
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((user, host)) = rest.split_once('@')
        && !user.contains('/')
    {
        return (format!("{scheme}://{SECRET}@{host}"), false);
    }
    let secret = |name: &str| NAMES.iter().any(|part| name.contains(part));
    for separator in ['=', ':'] {
        if let Some((name, value)) = lower.split_once(separator)
            && secret(name)
        {
            let shown = &word[..=name.len()];
            return match value.is_empty() {
                true => (word.to_owned(), true),
                false => (format!("{shown}{SECRET}"), false),
            };
        }
    }
    // A run without a pause, as keys and tokens are; ids and addresses have pauses.
    let run = word.split(|c: char| !c.is_ascii_alphanumeric() && !"+/=_".contains(c));
    let long = run.into_iter().any(|part| {
        part.len() >= 32
            && part.contains(|c: char| c.is_ascii_digit())
            && part.contains(|c: char| c.is_ascii_alphabetic())
            && !part.contains('/')
    });
    if long { (SECRET.to_owned(), false) } else { (word.to_owned(), false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(api_version: &str, kind: &str) -> OutsideObject {
        OutsideObject {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: "servers".to_owned(),
            namespace: Some("shop".to_owned()),
            name: "web-1".to_owned(),
            uid: "u-1".to_owned(),
        }
    }

    #[test]
    fn a_message_is_shown_without_what_may_be_a_secret() {
        let table = [
            ("cannot delete server: conflict", "cannot delete server: conflict"),
            ("token=abc is wrong", "token=[hidden] is wrong"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer [hidden]"),
            ("password: hunter2 refused", "password: [hidden] refused"),
            ("https://me:pw@example.org/x gone", "https://[hidden]@example.org/x gone"),
            ("X-Amz-Signature=0a1b; denied", "X-Amz-Signature=[hidden] denied"),
            ("key AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 bad", "key [hidden] bad"),
            (
                "request 0192f0c1-2b3c-7d4e-8f50-123456789abc failed",
                "request 0192f0c1-2b3c-7d4e-8f50-123456789abc failed",
            ),
        ];
        for (message, shown) in table {
            assert_eq!(cleaned(message), shown);
        }
        let long = cleaned(&"a ".repeat(5_000));
        assert!(long.chars().count() <= SHOWN_TEXT + 1, "{long}");
        assert_eq!(cleaned("a\u{0}b"), storable("a\u{0}b"));
    }

    #[test]
    fn the_command_names_the_cloud_and_is_one_that_can_be_typed() {
        let found = |group: &str, name: &str| find_command(&object(group, "Server"), name);
        assert_eq!(
            found("hcloud.crossplane.io/v1", "42"),
            Some("hcloud server describe 42".into())
        );
        assert!(found("ec2.aws.m.upbound.io/v1", "i-1").unwrap().ends_with("grep -F -- i-1"));
        assert!(found("compute.gcp.upbound.io/v1", "x").unwrap().contains("name:x"));
        let quoted = found("network.azure.upbound.io/v1", "a b'; rm").unwrap();
        assert!(quoted.ends_with(r"'a b'\''; rm'"), "{quoted}");
        assert_eq!(found("example.org/v1", "x"), None);
    }

    #[test]
    fn the_holder_of_a_finalizer_is_named() {
        let holder = |finalizers: &[&str]| Holder {
            object: object("hcloud.crossplane.io/v1", "Server"),
            owners: "XServer shop/pr-1 → Server shop/web-1".to_owned(),
            terminating: true,
            finalizers: finalizers.iter().map(|name| (*name).to_owned()).collect(),
            external_name: None,
            provider_config: Some("hetzner".to_owned()),
            error: None,
            keepable: Keepable::Yes,
        };
        let by = |finalizers: &[&str]| holder(finalizers).held_by().unwrap_or_default();
        let managed = by(&["finalizer.managedresource.crossplane.io"]);
        assert!(managed.contains("hcloud.crossplane.io (ProviderConfig hetzner)"), "{managed}");
        assert!(by(&["example.org/backup"]).contains("example.org/backup"));
        assert_eq!(by(&[]), "");
        assert_eq!(holder(&["x"]).document().get("retry"), None, "no provider would try again");
        let retry = holder(&[FINALIZER_MANAGED]).document()["retry"].to_string();
        assert!(retry.contains("servers.hcloud.crossplane.io web-1 -n shop"), "{retry}");
    }
}
