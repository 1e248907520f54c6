//! Settings of deletions, per project and kind.

use slipway_core::deletion::settings::{
    self, DeletionSetting, KINDS, SettingScope, SettingSnapshot, Values,
};
use slipway_core::error::Refusal;
use slipway_core::nearest::not_one_of;
use slipway_core::subject::SubjectKind;
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::kind::NO_REASON;
use crate::{Context, Error};

/// The settings that the caller reaches: those of its project, and those of everything.
/// The general ones come first.
pub async fn list(context: &Context, caller: &Caller) -> Result<Vec<DeletionSetting>, Error> {
    authorise(caller, Operation::DeletionSettingsRead)?;
    let mut found = context.stores.deletion.setting_list(caller.project).await?;
    found.sort_by_key(|setting| setting.scope);
    Ok(found)
}

/// The kind of a setting, by its name.
pub fn kind(text: &str) -> Result<SubjectKind, Refusal> {
    let known = SubjectKind::parse(text).filter(|kind| KINDS.contains(kind));
    known.ok_or_else(|| not_one_of("kind", text, &KINDS.map(SubjectKind::as_str)))
}

/// Sets the values of a scope, and answers the setting as it is then.
pub async fn set(
    context: &Context,
    caller: &Caller,
    scope: SettingScope,
    values: Values,
    reason: Option<&str>,
) -> Result<DeletionSetting, Error> {
    let actor = authorise(caller, Operation::DeletionSettingsSet)?;
    let reason = Reason::parse(reason.unwrap_or(NO_REASON)).map_err(Refusal::from)?;
    let mut rule =
        |snapshot: &SettingSnapshot| settings::set(snapshot, scope, values, &reason, &actor);
    let store = &context.stores.deletion;
    store.setting_decide(scope, &mut rule).await?;
    let found = store.setting_list(scope.project).await?;
    found.into_iter().find(|setting| setting.scope == scope).ok_or_else(|| {
        let text = "the setting was removed meanwhile; set it again";
        Refusal::new(slipway_core::ErrorKind::RevisionStale, text).into()
    })
}

/// Takes the setting of a scope away.
pub async fn remove(
    context: &Context,
    caller: &Caller,
    scope: SettingScope,
    reason: Option<&str>,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::DeletionSettingsRemove)?;
    let reason = Reason::parse(reason.unwrap_or(NO_REASON)).map_err(Refusal::from)?;
    let mut rule =
        |snapshot: &SettingSnapshot| Ok(settings::remove(snapshot, scope, &reason, &actor));
    Ok(context.stores.deletion.setting_decide(scope, &mut rule).await?)
}
