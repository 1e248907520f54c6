//! Defining what a label means.

use serde_json::json;

use crate::access::audit::Actor;
use crate::catalog::CatalogWrite;
use crate::catalog::label::{LabelDefinition, LabelKey};
use crate::catalog::rules::common::{About, audited, name_taken, unknown};
use crate::catalog::snapshot::LabelSnapshot;
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{LabelDefinitionId, Revision};
use crate::precondition::Expected;

#[derive(Debug, Clone)]
pub struct NewLabel {
    pub id: LabelDefinitionId,
    pub key: LabelKey,
    pub description: String,
    pub propagate: bool,
}

pub fn define(snapshot: &LabelSnapshot, new: &NewLabel, actor: &Actor) -> Result<Commit, Refusal> {
    if let Some(holder) = &snapshot.label {
        return Err(name_taken("key", "label", new.key.as_str(), holder.id.as_uuid()));
    }
    let label = LabelDefinition {
        id: new.id,
        key: new.key.clone(),
        description: new.description.clone(),
        propagate: new.propagate,
        revision: Revision::FIRST,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "key": label.key.as_str(), "propagate": label.propagate });
    let write = CatalogWrite::LabelInsert(label);
    Ok(audited(write, "label.define", about(new.id), actor, snapshot.now, details))
}

pub fn update(
    snapshot: &LabelSnapshot,
    description: Option<&str>,
    propagate: Option<bool>,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let label = existing(snapshot)?;
    expected.check("label", label.revision)?;
    let updated = LabelDefinition {
        description: description.unwrap_or(&label.description).to_owned(),
        propagate: propagate.unwrap_or(label.propagate),
        ..label.clone()
    };
    let details = json!({
        "key": label.key.as_str(),
        "before": { "description": label.description, "propagate": label.propagate },
        "after": { "description": updated.description, "propagate": updated.propagate },
    });
    let write = CatalogWrite::LabelUpdate(updated);
    Ok(audited(write, "label.update", about(label.id), actor, snapshot.now, details))
}

/// Deletes the definition; labels with the key stay and no longer propagate.
pub fn delete(
    snapshot: &LabelSnapshot,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let label = existing(snapshot)?;
    expected.check("label", label.revision)?;
    let details = json!({ "key": label.key.as_str() });
    let write = CatalogWrite::LabelDelete(label.clone());
    Ok(audited(write, "label.delete", about(label.id), actor, snapshot.now, details))
}

fn existing(snapshot: &LabelSnapshot) -> Result<&LabelDefinition, Refusal> {
    snapshot.label.as_ref().ok_or_else(|| unknown(ErrorKind::LabelNotFound, "label definition"))
}

fn about(id: LabelDefinitionId) -> About {
    About::new(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::catalog::mk_label;
    use crate::fixtures::{at, mk_actor};

    #[test]
    fn a_key_is_defined_once_and_an_update_names_its_revision() {
        let there = LabelSnapshot { now: at(1_000), label: Some(mk_label()) };
        let new = NewLabel {
            id: mk_label().id,
            key: mk_label().key,
            description: String::new(),
            propagate: true,
        };
        assert_eq!(define(&there, &new, &mk_actor()).unwrap_err().kind, ErrorKind::NameTaken);
        let stale = Expected::Exactly(Revision(99));
        let refusal = update(&there, None, Some(true), stale, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RevisionStale);
        let absent = LabelSnapshot { label: None, ..there };
        assert!(define(&absent, &new, &mk_actor()).is_ok());
        let refusal = delete(&absent, Expected::Any, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::LabelNotFound);
    }
}
