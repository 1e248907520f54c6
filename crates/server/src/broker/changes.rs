//! Changing what is declared: in place, or by another attempt.

use slipway_app::broker::replace::{self, Order};
use slipway_app::broker::update;
use slipway_app::broker::update::{Changes, FieldChange};
use slipway_core::broker::redeclare::Corrections;
use slipway_core::error::Refusal;
use slipway_core::ids::ResourceId;
use slipway_wire::broker::{self as wire, Replace, UpdateResource, UpdatedResource};

use super::resources::{accepted, fetch};
use crate::request::{Answered, Body, Call, Id, IfMatch, Shown, Tagged};

/// The resource afterwards, with the difference; a dry run shows it as it is.
pub(super) async fn update(
    call: Call,
    Id(id): Id<ResourceId>,
    IfMatch(expected): IfMatch,
    Body(body): Body<UpdateResource>,
) -> Shown<UpdatedResource> {
    let dry_run = call.query.flag("dry_run")?;
    let UpdateResource { version, parameters, labels } = body;
    let changes = Changes { version, parameters, labels };
    let (context, caller) = (&call.context, &call.caller);
    let changed = match dry_run {
        true => update::preview(context, caller, id, &changes, expected).await?,
        false => update::update(context, caller, id, changes, expected).await?,
    };
    let Tagged { revision, document: resource } = fetch(&call, id).await?;
    let changes = changed.into_iter().map(document).collect();
    Ok(Tagged { revision, document: UpdatedResource { resource, dry_run, changes } })
}

fn document(FieldChange { field, before, after }: FieldChange) -> wire::FieldChange {
    wire::FieldChange { field, before, after }
}

pub(super) async fn replace(
    call: Call,
    Id(id): Id<ResourceId>,
    IfMatch(expected): IfMatch,
    Body(body): Body<Replace>,
) -> Answered {
    let Replace { reason, version, parameters, surge, abort } = body;
    let corrections = Corrections { version, parameters };
    let (context, caller, reason) = (&call.context, &call.caller, reason.as_deref());
    if abort {
        if surge || !corrections.is_empty() {
            let problem = "takes the second attempt away and cannot be with `surge`, `version` or `parameters`";
            return Err(Refusal::invalid("abort", problem).into());
        }
        replace::abort(context, caller, id, reason, expected).await?;
    } else {
        let order = if surge { Order::Surge } else { Order::OldGoesFirst };
        replace::replace(context, caller, id, reason, &corrections, order, expected).await?;
    }
    Ok(accepted(id, fetch(&call, id).await?))
}
