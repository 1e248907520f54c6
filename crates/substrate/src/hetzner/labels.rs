//! What the engine writes into the labels of a server, and reads back. The API gives back
//! neither user data nor anything else that could tell what a server was made from, so the
//! labels carry it: whose it is, the claim, the token, and hashes.
//!
//! | label `slipway.dev/…` | |
//! |---|---|
//! | `installation`, `project`, `resource`, `provisioned-resource`, `namespace` | whose it is |
//! | `group` | of a server of a workspace: its group |
//! | `claim-token` | the claim of the last writer |
//! | `bootstrap-token-id`, `bootstrap-token-hash` | the token in its user data |
//! | `owned-hash` | over what was rendered |
//! | `lasting-hash` | over what a server keeps for life |
//! | `state-hash` | over our labels and the protection, as they should be: drift shows |
//!
//! A value has at most 63 characters, too few for a SHA-256 in hexadecimal, so hashes are in
//! base 32. Labels of others are left alone.

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use serde_json::{Value, json};
use slipway_core::ids::{BootstrapTokenId, ClaimToken, GroupId, ProvisionedResourceId};
use slipway_core::nodes::token::{Carried, SecretHash};
use slipway_render::composite::{
    ANNOTATION_BOOTSTRAP_TOKEN, ANNOTATION_CLAIM_TOKEN, LABEL_GROUP, LABEL_INSTALLATION,
    LABEL_PROVISIONED_RESOURCE,
};
use slipway_render::hetzner::ServerSpec;
use slipway_render::{RenderedComposite, canonical, composite};

use super::shapes::Labels;

const NAMESPACE: &str = "slipway.dev/namespace";
const TOKEN_HASH: &str = "slipway.dev/bootstrap-token-hash";
const OWNED_HASH: &str = "slipway.dev/owned-hash";
const LASTING_HASH: &str = "slipway.dev/lasting-hash";
const STATE_HASH: &str = "slipway.dev/state-hash";

/// They differ from write to write, or cannot be part of their own hash.
const VOLATILE: [&str; 4] =
    [ANNOTATION_CLAIM_TOKEN, ANNOTATION_BOOTSTRAP_TOKEN, TOKEN_HASH, STATE_HASH];

/// The prefixes of what is ours: our own words, and cloud tags.
const MANAGED: [&str; 2] = ["slipway.dev/", "slipway-"];

const LONGEST: usize = 63;

/// The labels that a server of this composite has. What does not fit the syntax of the
/// provider is left out.
pub(super) fn desired(rendered: &RenderedComposite, spec: &ServerSpec) -> Labels {
    let object = rendered.expose_object();
    let texts = |map: &Value| -> Vec<(String, String)> {
        let pairs = map.as_object().into_iter().flatten();
        pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    };
    let mut labels = Labels::new();
    labels.extend(texts(&object["metadata"]["labels"]));
    labels.extend(texts(&object["spec"]["cloudTags"]));
    labels.retain(|key, value| is_managed(key) && is_label(key, value));
    let mut set = |key: &str, value: String| labels.insert(key.to_owned(), value);
    set(NAMESPACE, rendered.namespace().to_owned());
    set(OWNED_HASH, packed(rendered.owned_hash()));
    set(LASTING_HASH, packed(&spec.lasting_hash()));
    set(ANNOTATION_CLAIM_TOKEN, rendered.claim_token().0.to_string());
    if let Carried::Token { id, hash } = composite::carried(object) {
        set(ANNOTATION_BOOTSTRAP_TOKEN, id.to_string());
        set(TOKEN_HASH, BASE32_NOPAD.encode(hash.as_bytes()).to_ascii_lowercase());
    }
    let state = state_hash(&labels, spec.delete_protection);
    labels.insert(STATE_HASH.to_owned(), state);
    labels
}

/// What the labels of a live server become: those of others stay, and so does the token, unless
/// `desired` has one.
pub(super) fn merged(live: &Labels, desired: &Labels) -> Labels {
    let token = [ANNOTATION_BOOTSTRAP_TOKEN, TOKEN_HASH];
    let stays = |key: &str| !is_managed(key) || token.contains(&key);
    let mut labels: Labels =
        live.iter().filter(|(key, _)| stays(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
    labels.extend(desired.iter().map(|(key, value)| (key.clone(), value.clone())));
    labels
}

/// Whether there is nothing to write. A new claim alone is not worth a request.
pub(super) fn is_so(live: &Labels, desired: &Labels) -> bool {
    let without_claim = |labels: &Labels| {
        let mut labels = labels.clone();
        labels.remove(ANNOTATION_CLAIM_TOKEN);
        labels
    };
    without_claim(&merged(live, desired)) == without_claim(live)
}

pub(super) fn installation(labels: &Labels) -> Option<&str> {
    labels.get(LABEL_INSTALLATION).map(String::as_str)
}

pub(super) fn owner(labels: &Labels) -> Option<ProvisionedResourceId> {
    labels.get(LABEL_PROVISIONED_RESOURCE)?.parse().ok()
}

pub(super) fn group(labels: &Labels) -> Option<GroupId> {
    labels.get(LABEL_GROUP)?.parse().ok()
}

/// Selects the servers of a group.
pub(super) fn of_group(group: GroupId) -> String {
    format!("{LABEL_GROUP}={group}")
}

pub(super) fn namespace(labels: &Labels) -> Option<&str> {
    labels.get(NAMESPACE).map(String::as_str)
}

pub(super) fn claim_token(labels: &Labels) -> Option<ClaimToken> {
    labels.get(ANNOTATION_CLAIM_TOKEN)?.parse().ok().map(ClaimToken)
}

/// The token in the user data, as the create said.
pub(super) fn carried(labels: &Labels) -> Carried {
    let id = labels.get(ANNOTATION_BOOTSTRAP_TOKEN).and_then(|id| id.parse().ok());
    let hash = labels.get(TOKEN_HASH).and_then(|text| {
        let bytes = BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes()).ok()?;
        SecretHash::from_slice(&bytes)
    });
    match id.zip(hash) {
        Some((id, hash)) => Carried::Token { id: BootstrapTokenId::new(id), hash },
        None => Carried::Nothing,
    }
}

/// The hash over what we own: that of the last apply, as long as labels and protection are as
/// it left them.
pub(super) fn owned_hash(labels: &Labels, is_protected: bool) -> String {
    let text = |key: &str| labels.get(key).map(String::as_str).unwrap_or_default();
    let applied = unpacked(text(OWNED_HASH));
    match applied.filter(|_| text(STATE_HASH) == state_hash(labels, is_protected)) {
        Some(applied) => applied,
        None => "changed by somebody else".to_owned(),
    }
}

/// Whether the server lasts as this composite wants it; one that does not say counts as such.
pub(super) fn lasts(live: &Labels, desired: &Labels) -> bool {
    let found = live.get(LASTING_HASH);
    found.is_none() || found == desired.get(LASTING_HASH)
}

fn is_managed(key: &str) -> bool {
    MANAGED.iter().any(|prefix| key.starts_with(prefix))
}

fn state_hash(labels: &Labels, is_protected: bool) -> String {
    let ours = labels.iter().filter(|(key, _)| is_managed(key) && !VOLATILE.contains(&&***key));
    let ours: Labels = ours.map(|(key, value)| (key.clone(), value.clone())).collect();
    packed(&canonical::hash(&json!({ "labels": ours, "protected": is_protected })))
}

/// From hexadecimal.
fn packed(hash: &str) -> String {
    let bytes = HEXLOWER.decode(hash.as_bytes()).unwrap_or_default();
    BASE32_NOPAD.encode(&bytes).to_ascii_lowercase()
}

fn unpacked(text: &str) -> Option<String> {
    let bytes = BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes()).ok()?;
    (bytes.len() == 32).then(|| HEXLOWER.encode(&bytes))
}

/// The syntax of the provider.
fn is_label(key: &str, value: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    let word = |text: &str| {
        text.len() <= LONGEST
            && text.chars().all(|c| edge(c) || "-_.".contains(c))
            && text.starts_with(edge)
            && text.ends_with(edge)
    };
    let name = match key.split_once('/') {
        Some((prefix, name)) => {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
            if prefix.is_empty() || prefix.len() > 253 || !prefix.chars().all(plain) {
                return false;
            }
            name
        }
        None => key,
    };
    word(name) && (value.is_empty() || word(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_hash_survives_the_way_through_a_label() {
        let hash = canonical::hash(&json!({ "a": 1 }));
        assert!(packed(&hash).len() <= LONGEST && is_label("a", &packed(&hash)));
        assert_eq!(unpacked(&packed(&hash)), Some(hash));
        for bad in ["", "zz", "not base 32!"] {
            assert_eq!(unpacked(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_write_leaves_the_labels_of_others_and_the_token() {
        let live = labels(&[
            ("env", "prod"),
            ("slipway-old", "x"),
            (ANNOTATION_BOOTSTRAP_TOKEN, "t"),
            (ANNOTATION_CLAIM_TOKEN, "1"),
        ]);
        let desired = labels(&[("slipway-new", "y"), (ANNOTATION_CLAIM_TOKEN, "2")]);
        let expected = labels(&[
            ("env", "prod"),
            ("slipway-new", "y"),
            (ANNOTATION_BOOTSTRAP_TOKEN, "t"),
            (ANNOTATION_CLAIM_TOKEN, "2"),
        ]);
        assert_eq!(merged(&live, &desired), expected);
        assert!(!is_so(&live, &desired));
        let newer = labels(&[("slipway-new", "y"), (ANNOTATION_CLAIM_TOKEN, "3")]);
        assert!(is_so(&expected, &newer), "a claim alone is not worth a request");
    }

    #[test]
    fn a_change_by_hand_shows_as_drift() {
        let hash = canonical::hash(&json!({}));
        let mut live = labels(&[("slipway.dev/resource", "r"), ("env", "prod")]);
        live.insert(OWNED_HASH.to_owned(), packed(&hash));
        let state = state_hash(&live, true);
        live.insert(STATE_HASH.to_owned(), state);
        assert_eq!(owned_hash(&live, true), hash);
        assert_ne!(owned_hash(&live, false), hash, "the protection was taken away");
        let mut others = live.clone();
        others.insert("env".to_owned(), "test".to_owned());
        assert_eq!(owned_hash(&others, true), hash, "not ours");
        let mut ours = live.clone();
        ours.remove("slipway.dev/resource");
        assert_ne!(owned_hash(&ours, true), hash);
    }

    #[test]
    fn only_what_the_provider_takes_is_a_label() {
        for (key, value, good) in [
            ("slipway.dev/group", "web", true),
            ("slipway-a.b_c", "", true),
            ("slipway.dev/x", "-x", false),
            ("slipway.dev/x", "a b", false),
            ("slipway.dev/", "x", false),
            ("Slipway/x", "x", false),
            ("slipway.dev/x", &"x".repeat(64), false),
        ] {
            assert_eq!(is_label(key, value), good, "{key}={value}");
        }
    }
}
