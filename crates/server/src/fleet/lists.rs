//! Lists: the whole array, or a page of it if `limit` or `cursor` is given.

use std::fmt::Display;
use std::str::FromStr;

use axum::response::Response;
use serde::Serialize;
use slipway_app::fleet::port::FleetFilter;
use slipway_app::fleet::principal;
use slipway_app::ports::Listed;
use slipway_app::ports::store::{PAGE_MAX, Page};
use slipway_core::error::Refusal;
use slipway_core::ids::GeneratorId;

use crate::error::Rejection;
use crate::request::Call;

/// Collects the pages that an answer has.
pub(super) struct Pages<'a, D, C> {
    call: &'a Call,
    all: Listed<D, C>,
    /// What to read next.
    next: Option<Page<C>>,
    limit: u32,
    is_whole: bool,
}

impl<'a, D: Serialize, C: Display + FromStr + Copy> Pages<'a, D, C> {
    pub(super) fn new(call: &'a Call) -> Result<Self, Refusal> {
        let is_whole = ["limit", "cursor"].iter().all(|name| call.query.get(name).is_none());
        let page = match is_whole {
            true => Page { after: None, limit: PAGE_MAX },
            false => call.query.page()?,
        };
        let all = Listed { items: Vec::new(), quarantined: Vec::new(), next: None };
        Ok(Self { call, all, limit: page.limit, next: Some(page), is_whole })
    }

    /// The page to read next; `None` when there is enough to answer.
    pub(super) fn next(&mut self) -> Option<Page<C>> {
        self.next.take()
    }

    pub(super) fn add(&mut self, found: Listed<D, C>) {
        self.all.items.extend(found.items);
        self.all.quarantined.extend(found.quarantined);
        match found.next {
            Some(after) if self.is_whole => {
                self.next = Some(Page { after: Some(after), limit: self.limit });
            }
            next => self.all.next = next,
        }
    }

    pub(super) fn answer(self) -> Response {
        self.call.page(self.all, self.limit)
    }
}

/// What the query of a list says.
pub(super) async fn filter(call: &Call) -> Result<FleetFilter, Rejection> {
    let project = principal::filter(&call.context, &call.caller, call.query.get("project")).await?;
    let generator = call.query.get("generator_id").map(|text| {
        text.parse::<GeneratorId>().map_err(|error| Refusal::from(error).at("generator_id"))
    });
    Ok(FleetFilter {
        project,
        generator: generator.transpose()?,
        name: call.query.text("name"),
        cluster_name: call.query.text("cluster_name"),
        show_deleted: call.query.flag("show_deleted")?,
    })
}
