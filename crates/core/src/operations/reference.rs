//! Which subject a person means by a name or by the beginning of an id.

use std::ops::RangeInclusive;

use serde_json::json;
use uuid::Uuid;

use crate::error::{ErrorKind, Refusal};
use crate::operations::explanation::ExplainedKind;
use crate::subject::SubjectKind;

/// Fewer digits would name nearly everything that was made in the same months.
const LEAST: usize = 4;

/// The ids that begin with this text. `None` if it is too short, a whole id, or no id.
pub fn ids_from(text: &str) -> Option<RangeInclusive<Uuid>> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    if !(LEAST..32).contains(&digits.len()) || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let filled =
        |with: &str| Uuid::try_parse(&format!("{digits}{}", with.repeat(32 - digits.len()))).ok();
    Some(filled("0")?..=filled("f")?)
}

/// The id in this text, which may be the name of a composite, `pr-<id>`.
pub fn without_prefix(text: &str) -> &str {
    text.strip_prefix("pr-").unwrap_or(text)
}

/// The only subject that was found, or the refusal that names them all.
pub fn only(
    text: &str,
    found: &[(ExplainedKind, Uuid)],
) -> Result<Option<(ExplainedKind, Uuid)>, Refusal> {
    if let [] | [_] = found {
        return Ok(found.first().copied());
    }
    let named: Vec<_> = found.iter().map(|(kind, id)| format!("{kind} {id}")).collect();
    let found = found.iter().map(|(kind, id)| json!({ "kind": kind, "id": id }));
    let problem = format!("is `{text}`, which fits {}; give more of the id", named.join(", "));
    let found: Vec<_> = found.collect();
    Err(Refusal::invalid("reference", problem).with(json!({ "found": found })))
}

/// One thing of the kind that a person named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub id: Uuid,
    /// Its name, with the project of one that is unique only within it.
    pub name: Option<String>,
    /// It has the name that was given; otherwise its id begins so.
    pub is_named: bool,
    /// Not deleted, deregistered or revoked.
    pub is_live: bool,
}

/// The one that is meant: by its name, the newest if none of that name is live, or else by
/// the beginning of its id. Refuses to choose among several; `field` is where it was named.
pub fn choose(
    kind: SubjectKind,
    field: &str,
    text: &str,
    found: &[Candidate],
) -> Result<Option<Uuid>, Refusal> {
    let pick = |fits: fn(&Candidate) -> bool| found.iter().filter(|one| fits(one)).collect();
    let live: Vec<&Candidate> = pick(|one| one.is_named && one.is_live);
    let gone: Vec<&Candidate> = pick(|one| one.is_named && !one.is_live);
    // Ids are in the order of creation.
    let newest = gone.into_iter().max_by_key(|one| one.id);
    let meant = match (live.is_empty(), newest) {
        (false, _) => live,
        (true, Some(newest)) => vec![newest],
        (true, None) => pick(|_| true),
    };
    if let [] | [_] = meant[..] {
        return Ok(meant.first().map(|one| one.id));
    }
    let named = meant.iter().map(|one| match &one.name {
        Some(name) => format!("{name} ({})", one.id),
        None => one.id.to_string(),
    });
    let problem = format!(
        "is `{text}`, which fits the {} {}; give more of the id",
        noun(kind),
        named.collect::<Vec<_>>().join(", ")
    );
    let found: Vec<_> = meant.iter().map(|one| json!({ "id": one.id, "name": one.name })).collect();
    Err(Refusal::invalid(field, problem).with(json!({ "found": found })))
}

/// Nothing of this kind has such a name or id.
pub fn unknown(kind: SubjectKind, text: &str) -> Refusal {
    let error = match kind {
        SubjectKind::Node => ErrorKind::NodeNotFound,
        SubjectKind::Deletion => ErrorKind::DeletionNotFound,
        SubjectKind::LeakRecord => ErrorKind::LeakNotFound,
        SubjectKind::BootstrapToken => ErrorKind::TokenNotFound,
        SubjectKind::ApiKey => ErrorKind::KeyNotFound,
        SubjectKind::Credential => ErrorKind::CredentialNotFound,
        SubjectKind::Tenant => ErrorKind::TenantNotFound,
        SubjectKind::Workspace => ErrorKind::WorkspaceNotFound,
        SubjectKind::TenantProfile => ErrorKind::TenantProfileNotFound,
        SubjectKind::ProvisionedResource => ErrorKind::ProvisionedResourceNotFound,
        _ => ErrorKind::ResourceNotFound,
    };
    let known = match kind {
        SubjectKind::Deletion
        | SubjectKind::LeakRecord
        | SubjectKind::BootstrapToken
        | SubjectKind::ProvisionedResource => "id",
        _ => "name or id",
    };
    Refusal::new(error, format!("there is no {} `{text}`; check its {known}", noun(kind)))
}

/// The kind as commands call it.
fn noun(kind: SubjectKind) -> &'static str {
    match kind {
        SubjectKind::ApiKey => "key",
        SubjectKind::LeakRecord => "leak",
        SubjectKind::BootstrapToken => "token",
        SubjectKind::ProvisionedResource => "attempt",
        kind => kind.as_str(),
    }
}

/// Nothing of this kind has such an id.
pub fn missing(kind: ExplainedKind, text: &str) -> Refusal {
    let error = match kind {
        ExplainedKind::Resource => ErrorKind::ResourceNotFound,
        ExplainedKind::Attempt => ErrorKind::ProvisionedResourceNotFound,
        ExplainedKind::Node => ErrorKind::NodeNotFound,
        ExplainedKind::Deletion => ErrorKind::DeletionNotFound,
        ExplainedKind::Project => ErrorKind::ProjectNotFound,
        ExplainedKind::Cluster => ErrorKind::ClusterNotFound,
        ExplainedKind::Token => ErrorKind::TokenNotFound,
        ExplainedKind::Leak => ErrorKind::LeakNotFound,
        ExplainedKind::Rollout => ErrorKind::RolloutNotFound,
        ExplainedKind::Stack => ErrorKind::StackNotFound,
        ExplainedKind::Agent => ErrorKind::AgentNotFound,
        ExplainedKind::Generator => ErrorKind::GeneratorNotFound,
        ExplainedKind::Tenant => ErrorKind::TenantNotFound,
        ExplainedKind::Job => ErrorKind::TenantJobNotFound,
        ExplainedKind::Workspace => ErrorKind::WorkspaceNotFound,
    };
    Refusal::new(error, format!("there is no {kind} {text}; check the id"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// An id is in the range of each of its beginnings, and of no other text.
        #[test]
        fn a_beginning_names_exactly_the_ids_that_begin_so(
            id in any::<u128>().prop_map(Uuid::from_u128),
            other in any::<u128>().prop_map(Uuid::from_u128),
            length in 0_usize..40,
        ) {
            let text: String = id.to_string().chars().take(length).collect();
            let digits = text.replace('-', "").len();
            let range = ids_from(&text);
            prop_assert_eq!(range.is_some(), (LEAST..32).contains(&digits), "{}", text);
            if let Some(range) = range {
                prop_assert!(range.contains(&id));
                prop_assert_eq!(range.contains(&other), other.to_string().starts_with(&text));
            }
        }
    }

    #[test]
    fn what_is_no_beginning_of_an_id_names_nothing() {
        for text in ["", "019", "web-1", "019g", "0192f0c1-2b3c-7d4e-8f50-123456789abc"] {
            assert_eq!(ids_from(text), None, "{text}");
        }
        assert!(ids_from("0192F0C1").is_some());
    }

    #[test]
    fn a_name_wins_and_one_that_is_live() {
        let mk = |number, is_named, is_live| Candidate {
            id: Uuid::from_u128(number),
            name: Some(format!("n{number}")),
            is_named,
            is_live,
        };
        let choose = |found: &[Candidate]| choose(SubjectKind::ApiKey, "id", "cafe", found);
        let id = |number| Ok(Some(Uuid::from_u128(number)));
        assert_eq!(choose(&[]), Ok(None));
        assert_eq!(choose(&[mk(1, false, true)]), id(1), "by the beginning of its id");
        assert_eq!(choose(&[mk(1, false, true), mk(2, true, true)]), id(2), "by its name");
        assert_eq!(choose(&[mk(1, true, true), mk(2, true, false)]), id(1), "the live one");
        assert_eq!(choose(&[mk(1, true, false), mk(2, true, false)]), id(2), "the newest");
        for found in
            [[mk(1, true, true), mk(2, true, true)], [mk(1, false, true), mk(2, false, false)]]
        {
            let refusal = choose(&found).unwrap_err();
            for one in &found {
                assert!(refusal.message.contains(&one.id.to_string()), "{refusal}");
            }
            assert!(refusal.message.contains("the key n1 ("), "{refusal}");
        }
        assert_eq!(unknown(SubjectKind::ApiKey, "ci").kind, ErrorKind::KeyNotFound);
    }

    #[test]
    fn several_are_named_and_none_is_chosen() {
        let one = |number| (ExplainedKind::Node, Uuid::from_u128(number));
        assert_eq!(only("0000", &[]), Ok(None));
        assert_eq!(only("0000", &[one(1)]), Ok(Some(one(1))));
        let refusal = only("0000", &[one(1), one(2)]).unwrap_err();
        assert_eq!(
            (refusal.kind, refusal.field.as_deref()),
            (ErrorKind::InvalidInput, Some("reference"))
        );
        assert!(refusal.message.contains(&format!("node {}", one(2).1)), "{refusal}");
    }
}
