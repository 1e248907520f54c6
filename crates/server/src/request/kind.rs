//! The handlers that all kinds have in common: show one, list them, answer a
//! create, delete. A kind brings its document; its creates and updates read
//! bodies of their own.

use std::fmt::Display;

use axum::http::StatusCode;
use serde::Serialize;
use slipway_app::deletion::request::{self, DeletableKind, DeleteOptions};
use slipway_app::kind::{self, ShowDeleted, StoredKind};
use slipway_core::access::idempotency::Request;
use slipway_core::error::Refusal;
use slipway_core::ids::PlanId;
use slipway_core::precondition::Expected;
use slipway_core::text::check_reference;
use slipway_core::time::parse_duration;

use super::call::{Answered, Call, Made, Shown, Tagged};
use super::extract::Segments;
use super::idempotent_create::{Creation, create_once};
use super::names::Referring;
use super::precondition::IfMatch;
use super::query::Parameters;
use crate::deletion;

/// A kind as our API shows it.
pub(crate) trait Documented: StoredKind {
    type Document: Serialize + Referring;

    fn document(&self) -> Self::Document;
}

/// What a list shows, as its query asks for it.
pub(crate) trait FromQuery: Sized {
    fn from_query(query: &Parameters) -> Result<Self, Refusal>;
}

impl FromQuery for ShowDeleted {
    fn from_query(query: &Parameters) -> Result<Self, Refusal> {
        query.flag("show_deleted").map(Self)
    }
}

pub(crate) async fn get<K: Documented>(
    call: Call,
    Segments([reference]): Segments<1>,
) -> Shown<K::Document> {
    show::<K>(&call, reference, call.query.flag("show_deleted")?).await
}

pub(crate) async fn list<K: Documented<Filter: FromQuery>>(call: Call) -> Answered {
    let (page, filter) = (call.query.page()?, <K::Filter>::from_query(&call.query)?);
    let found = kind::list::<K>(&call.context, &call.caller, &filter, page).await?;
    call.named_page(found.map(K::document), page.limit).await
}

/// What the query of a deletion says.
pub(crate) fn delete_options(
    query: &Parameters,
    expected: Expected,
) -> Result<DeleteOptions<'_>, Refusal> {
    let grace = query.get("grace").map(|text| {
        let problem = "must be a time such as `30m`, `24h` or `0s`";
        parse_duration(text).map_err(|_| Refusal::invalid("grace", problem))
    });
    let plan = query
        .get("plan")
        .map(|text| text.parse::<PlanId>().map_err(|error| Refusal::from(error).at("plan")));
    Ok(DeleteOptions {
        reason: query.get("reason"),
        expected,
        grace: grace.transpose()?,
        cascade: query.flag("cascade")?,
        break_glass: query.flag("break_glass")?,
        plan: plan.transpose()?,
        keep: query.flag("keep")?,
    })
}

/// Deletes one softly, at once or when its grace ends, and answers the record.
pub(crate) async fn delete<K: Documented + DeletableKind<Key = str>>(
    call: Call,
    Segments([reference]): Segments<1>,
    IfMatch(expected): IfMatch,
) -> Answered {
    check_reference(K::KIND, &reference).map_err(Refusal::from)?;
    let options = delete_options(&call.query, expected)?;
    let id = request::delete::<K>(&call.context, &call.caller, &reference, options).await?;
    deletion::answer(&call, StatusCode::OK, id).await
}

/// Creates one, and answers its document and its location.
pub(crate) async fn create<K: Documented, B>(
    call: &Call,
    new: Creation<B>,
    make: impl AsyncFnOnce(B, Option<Request>) -> Result<K::Id, slipway_app::Error>,
) -> Made {
    let show = async |id| Ok(show::<K>(call, id, true).await?.created(call.below(id)));
    create_once(call, new, make, show).await
}

/// The document of a name or id.
pub(crate) async fn show<K: Documented>(
    call: &Call,
    reference: impl Display,
    show_deleted: bool,
) -> Shown<K::Document> {
    let reference = reference.to_string();
    let found = kind::fetch::<K>(&call.context, &call.caller, &reference, show_deleted).await?;
    Ok(Tagged { revision: found.revision().0, document: call.named(found.document()).await? })
}
