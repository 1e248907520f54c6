//! What a person names in a request, and the names in an answer.

use std::collections::BTreeMap;

use slipway_core::operations::reference;
use slipway_core::subject::SubjectKind;
use slipway_core::text::check_reference;
use uuid::Uuid;

use crate::access::authorise::Caller;
use crate::{Context, Error};

/// The id of what a caller names within its reach: by its name, its id, the beginning of
/// it, or the name of its composite. `None` if nothing is named so.
pub async fn find(
    context: &Context,
    caller: &Caller,
    kind: SubjectKind,
    text: &str,
) -> Result<Option<Uuid>, Error> {
    check_reference("id", text)?;
    let id = reference::without_prefix(text);
    let whole = Uuid::try_parse(id).ok().map(|id| id..=id);
    let ids = whole.or_else(|| reference::ids_from(id)).unwrap_or(Uuid::max()..=Uuid::nil());
    let found = context.stores.access.candidates(kind, text, &ids, caller.project).await?;
    Ok(reference::choose(kind, "id", text, &found)?)
}

/// The whole id for the beginning of one. Anything else stays, and names do: the store finds
/// the live thing of a name, also one that is unique only within its cloud.
pub async fn full_id(
    context: &Context,
    caller: &Caller,
    field: &str,
    kind: SubjectKind,
    text: String,
) -> Result<String, Error> {
    let Some(ids) = reference::ids_from(&text) else { return Ok(text) };
    let found = context.stores.access.candidates(kind, &text, &ids, caller.project).await?;
    if found.iter().any(|one| one.is_named && one.is_live) {
        return Ok(text);
    }
    let meant = reference::choose(kind, field, &text, &found)?;
    Ok(meant.map_or(text, |id| id.to_string()))
}

/// The kinds that a name is looked for in, if a caller does not say which it means.
const ANY: [SubjectKind; 17] = [
    SubjectKind::Resource,
    SubjectKind::Project,
    SubjectKind::ApiKey,
    SubjectKind::Node,
    SubjectKind::Cluster,
    SubjectKind::Credential,
    SubjectKind::Cloud,
    SubjectKind::Blueprint,
    SubjectKind::ProvisionedResource,
    SubjectKind::Deletion,
    SubjectKind::Generator,
    SubjectKind::Stack,
    SubjectKind::Template,
    SubjectKind::Agent,
    SubjectKind::Tenant,
    SubjectKind::TenantProfile,
    SubjectKind::Workspace,
];

/// The same for something of this kind, or of the first kind that has it.
pub async fn find_any(
    context: &Context,
    caller: &Caller,
    kind: Option<&str>,
    text: &str,
) -> Result<Uuid, Error> {
    let given = kind.and_then(SubjectKind::parse);
    let kinds = given.as_ref().map_or(&ANY[..], std::slice::from_ref);
    for kind in kinds {
        if let Some(found) = find(context, caller, *kind, text).await? {
            return Ok(found);
        }
    }
    Err(reference::unknown(given.unwrap_or(SubjectKind::Resource), text).at("id").into())
}

/// The names of what an answer refers to, for a caller that gets their ids.
pub async fn names(context: &Context, ids: &[Uuid]) -> Result<BTreeMap<Uuid, String>, Error> {
    match ids {
        [] => Ok(BTreeMap::new()),
        ids => Ok(context.stores.access.names(ids).await?),
    }
}
