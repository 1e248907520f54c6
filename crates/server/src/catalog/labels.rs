//! Label definitions.

use slipway_app::catalog::labels;
use slipway_core::catalog::label;
use slipway_wire::catalog::{DefineLabel, LabelDefinition, UpdateLabel};

use crate::request::{
    Body, Call, Creation, Documented, IfMatch, Made, Referring, Segments, Shown, kind, text,
};

pub(super) async fn define(call: Call, new: Creation<DefineLabel>) -> Made {
    let make = async |body: DefineLabel, request| {
        let DefineLabel { key, description, propagate } = body;
        labels::define(&call.context, &call.caller, &key, &description, propagate, request).await
    };
    // The location has the id: a key may contain a slash, a segment may not.
    kind::create::<label::LabelDefinition, _>(&call, new, make).await
}

pub(super) async fn update(
    call: Call,
    Segments([label]): Segments<1>,
    IfMatch(expected): IfMatch,
    Body(UpdateLabel { description, propagate }): Body<UpdateLabel>,
) -> Shown<LabelDefinition> {
    let description = description.as_deref();
    labels::update(&call.context, &call.caller, &label, description, propagate, expected).await?;
    kind::show::<label::LabelDefinition>(&call, label, false).await
}

impl Referring for LabelDefinition {}

impl Documented for label::LabelDefinition {
    type Document = LabelDefinition;

    fn document(&self) -> LabelDefinition {
        LabelDefinition {
            id: self.id.to_string(),
            key: self.key.as_str().to_owned(),
            description: self.description.clone(),
            propagate: self.propagate,
            revision: self.revision.0,
            created_at: self.created_at.to_string(),
            updated_at: self.updated_at.to_string(),
            deleted_at: text(self.deleted_at),
            deletion_id: text(self.deletion_id),
        }
    }
}
