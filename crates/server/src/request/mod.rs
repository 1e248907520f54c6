//! What all handlers share: the admitted [`Call`], the extractors, and the
//! answers: a document with its ETag, a page of a list, an idempotent create.

mod call;
mod extract;
mod idempotent_create;
pub(crate) mod kind;
mod list;
mod names;
mod precondition;
mod query;

pub(crate) use call::{Answered, Call, Done, Made, Shown, Tagged, Untagged, located, text};
pub(crate) use extract::{
    BODY_LIMIT, Body, Id, Segments, bearer, parse_json, read_body, read_body_up_to,
};
pub(crate) use idempotent_create::{Created, Creation, create_once};
pub(crate) use kind::{Documented, delete_options};
pub(crate) use names::{Referring, add_names};
pub(crate) use precondition::IfMatch;
pub(crate) use query::Parameters;
