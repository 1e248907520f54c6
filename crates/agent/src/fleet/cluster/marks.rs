//! What deployed objects carry, and what the marks of a live object say about it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_cluster::ObjectMeta;

use super::super::backend::{Owner, Stamp};

/// Everything of ours in labels and annotations begins with it.
const PREFIX: &str = "fleet.slipway.dev/";

pub(super) const INSTALLATION: &str = "fleet.slipway.dev/installation";
pub(super) const AGENT: &str = "fleet.slipway.dev/agent";
pub(super) const STACK: &str = "fleet.slipway.dev/stack";
/// Of the ConfigMaps of an inventory.
pub(super) const INVENTORY: &str = "fleet.slipway.dev/inventory";
const OBJECT: &str = "fleet.slipway.dev/deployment-object";
const CHECKSUM: &str = "fleet.slipway.dev/checksum";
/// It was there before we applied it.
const ADOPTED: &str = "fleet.slipway.dev/adopted";

/// Marks of others who apply what they mark again and again, or delete it.
const OTHERS: [(&str, &str); 4] = [
    ("brokkr.io/owner-id", "a Brokkr agent"),
    ("meta.helm.sh/release-name", "a release of Helm"),
    ("argocd.argoproj.io/tracking-id", "Argo CD"),
    ("kustomize.toolkit.fluxcd.io/name", "Flux"),
];

/// Whose a live object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    /// Nobody marked it.
    Nobodys,
    /// Somebody else's, described for people.
    Others(String),
}

fn text<'a>(marks: &'a Option<BTreeMap<String, String>>, key: &str) -> Option<&'a str> {
    marks.as_ref()?.get(key).map(String::as_str)
}

/// Whose an object is, seen from a stack of an agent.
pub(super) fn whose(live: &ObjectMeta, owner: &Owner, stack: &str) -> Whose {
    let label = |key| text(&live.labels, key);
    match (label(INSTALLATION), label(AGENT), label(STACK)) {
        (None, None, None) => {}
        (Some(installation), Some(agent), Some(found))
            if installation == owner.installation && agent == owner.agent =>
        {
            return match found == stack {
                true => Whose::Ours,
                false => Whose::Others(format!("the stack {found} of this agent")),
            };
        }
        (installation, agent, _) => {
            return Whose::Others(format!(
                "the agent {} of the installation {}",
                agent.unwrap_or("(none)"),
                installation.unwrap_or("(none)")
            ));
        }
    }
    let others = OTHERS.iter().find(|(key, _)| {
        text(&live.annotations, key).is_some() || text(&live.labels, key).is_some()
    });
    others.map_or(Whose::Nobodys, |(_, whose)| Whose::Others((*whose).to_owned()))
}

pub(super) fn is_adopted(live: &ObjectMeta) -> bool {
    text(&live.annotations, ADOPTED).is_some()
}

/// The body with the marks of its stack, and none that it brought itself.
pub(super) fn marked(body: &Value, owner: &Owner, stamp: &Stamp<'_>, is_adopted: bool) -> Value {
    let mut body = body.clone();
    let metadata = &mut body["metadata"];
    let own = |marks: &mut Value| {
        if let Some(marks) = marks.as_object_mut() {
            marks.retain(|key, _| !key.starts_with(PREFIX));
        }
    };
    own(&mut metadata["labels"]);
    own(&mut metadata["annotations"]);
    metadata["labels"][INSTALLATION] = json!(owner.installation);
    metadata["labels"][AGENT] = json!(owner.agent);
    metadata["labels"][STACK] = json!(stamp.stack);
    metadata["annotations"][OBJECT] = json!(stamp.object_id);
    metadata["annotations"][CHECKSUM] = json!(stamp.checksum);
    if is_adopted {
        metadata["annotations"][ADOPTED] = json!("true");
    }
    body
}

/// A patch that takes every mark of ours off.
pub(super) fn unmarking() -> Value {
    json!({ "metadata": {
        "labels": { INSTALLATION: null, AGENT: null, STACK: null },
        "annotations": { OBJECT: null, CHECKSUM: null, ADOPTED: null },
    } })
}

/// Selects the objects of a stack, without its inventory.
pub(super) fn of_stack(owner: &Owner, stack: &str) -> String {
    let Owner { installation, agent } = owner;
    format!("{INSTALLATION}={installation},{AGENT}={agent},{STACK}={stack},!{INVENTORY}")
}

/// Selects the inventory of an agent.
pub(super) fn selector(owner: &Owner) -> String {
    format!("{INVENTORY}=true,{AGENT}={}", owner.agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        Owner { installation: "i".to_owned(), agent: "a".to_owned() }
    }

    fn live(labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> ObjectMeta {
        let map = |pairs: &[(&str, &str)]| {
            Some(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
        };
        ObjectMeta { labels: map(labels), annotations: map(annotations), ..ObjectMeta::default() }
    }

    #[test]
    fn only_all_three_marks_make_an_object_ours() {
        let ours = [(INSTALLATION, "i"), (AGENT, "a"), (STACK, "s")];
        assert_eq!(whose(&live(&ours, &[]), &owner(), "s"), Whose::Ours);
        assert_eq!(whose(&ObjectMeta::default(), &owner(), "s"), Whose::Nobodys);
        for (index, named) in [(0, "installation x"), (1, "agent x"), (2, "stack x")] {
            let mut other = ours;
            other[index].1 = "x";
            let Whose::Others(text) = whose(&live(&other, &[]), &owner(), "s") else { panic!() };
            assert!(text.contains(named), "{text}");
        }
        assert!(matches!(whose(&live(&ours[..2], &[]), &owner(), "s"), Whose::Others(_)));
        let helm = live(&[], &[("meta.helm.sh/release-name", "x")]);
        assert!(matches!(whose(&helm, &owner(), "s"), Whose::Others(_)));
    }

    #[test]
    fn marks_of_the_content_do_not_count() {
        let body = json!({ "metadata": {
            "name": "n", "labels": { AGENT: "forged", "app": "x" }, "annotations": null,
        } });
        let stamp = Stamp { stack: "s", object_id: "o", checksum: "c" };
        let marked = marked(&body, &owner(), &stamp, true);
        assert_eq!(
            marked["metadata"]["labels"],
            json!({
                INSTALLATION: "i", AGENT: "a", STACK: "s", "app": "x",
            })
        );
        assert_eq!(marked["metadata"]["annotations"][ADOPTED], "true");
    }
}
