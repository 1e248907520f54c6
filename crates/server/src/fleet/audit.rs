//! The audit in the shape of Fleet's protocol, newest first. `/audit` has all of it, by pages.

use axum::Json;
use slipway_app::access::audit;
use slipway_app::access::port::{AuditFilter, AuditLine, AuditOrder};
use slipway_app::ports::store::{PAGE_MAX, Page};
use slipway_core::error::Refusal;
use slipway_core::fleet::overview::ActorType;
use slipway_core::ids::AuditEntryId;
use slipway_core::time::Timestamp;
use slipway_wire::fleet::{AuditLog, AuditLogListResponse};
use uuid::Uuid;

use crate::request::{Call, Untagged, text};

/// The most entries that are skipped; beyond them `/audit` is the way.
const OFFSET_MAX: u32 = 100_000;
const LIMIT_DEFAULT: u32 = 100;

pub(super) async fn list(call: Call) -> Untagged<AuditLogListResponse> {
    let (filter, actor) = filter(&call)?;
    let limit = number(&call, "limit", LIMIT_DEFAULT, PAGE_MAX)?.max(1);
    let offset = number(&call, "offset", 0, OFFSET_MAX)?;
    let (mut total, mut logs, mut after) = (0_u32, Vec::new(), None);
    loop {
        let page = Page { after, limit: PAGE_MAX };
        let order = AuditOrder::NewestFirst;
        let found = audit::list(&call.context, &call.caller, &filter, order, page).await?;
        for line in found.items.iter().map(shown) {
            if actor.is_some_and(|actor| actor.as_str() != line.actor_type) {
                continue;
            }
            if total >= offset && logs.len() < limit as usize {
                logs.push(line);
            }
            total += 1;
        }
        after = found.next.map(AuditEntryId::new);
        if after.is_none() || total >= OFFSET_MAX {
            break;
        }
    }
    Ok(Json(AuditLogListResponse {
        count: i64::try_from(logs.len()).unwrap_or(i64::MAX),
        limit: limit.into(),
        logs,
        offset: offset.into(),
        total: total.into(),
    }))
}

fn number(call: &Call, name: &str, default: u32, most: u32) -> Result<u32, Refusal> {
    let Some(text) = call.query.get(name) else { return Ok(default) };
    let problem = || Refusal::invalid(name, format!("must be a number from 0 to {most}"));
    text.parse().ok().filter(|number| *number <= most).ok_or_else(problem)
}

fn filter(call: &Call) -> Result<(AuditFilter, Option<ActorType>), Refusal> {
    let id = |name: &str| {
        let given = call.query.get(name).map(str::parse::<Uuid>);
        given.transpose().map_err(|_| Refusal::invalid(name, "must be a UUID"))
    };
    let time = |name: &str| {
        let given = call.query.get(name).map(str::parse::<Timestamp>);
        let problem = "must be a time such as 2026-01-31T12:00:00Z";
        given.transpose().map_err(|_| Refusal::invalid(name, problem))
    };
    let kind = call.query.get("actor_type").map(|text| ActorType::parse_field("actor_type", text));
    let kind = kind.transpose()?;
    let actor = match (id("actor_id")?, kind) {
        (None, _) => None,
        (Some(id), Some(ActorType::Generator)) => Some(format!("key:generator-{id}")),
        (Some(id), _) => Some(format!("key:agent-{id}")),
    };
    let filter = AuditFilter {
        actor,
        verb: call.query.text("action"),
        kind: call.query.text("resource_type"),
        subject: id("resource_id")?,
        since: time("from")?,
        until: time("to")?,
        ..AuditFilter::default()
    };
    Ok((filter, kind))
}

fn shown(line: &AuditLine) -> AuditLog {
    let (actor_type, actor_id) = actor(&line.actor);
    AuditLog {
        action: line.verb.clone(),
        actor_id: text(actor_id),
        actor_type: actor_type.to_string(),
        created_at: line.at.to_string(),
        details: Some(line.details.clone()),
        id: line.id.to_string(),
        ip_address: None,
        resource_id: Some(line.subject_id.to_string()),
        resource_type: line.subject_kind.clone(),
        timestamp: line.at.to_string(),
        user_agent: None,
    }
}

/// Keys of agents and generators are named after them.
fn actor(name: &str) -> (ActorType, Option<Uuid>) {
    let Some(key) = name.strip_prefix("key:") else { return (ActorType::System, None) };
    let of = |prefix: &str| key.strip_prefix(prefix)?.parse::<Uuid>().ok();
    match (of("agent-"), of("generator-")) {
        (Some(id), _) => (ActorType::Agent, Some(id)),
        (_, Some(id)) => (ActorType::Generator, Some(id)),
        _ => (ActorType::Admin, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_is_told_by_the_name_of_its_key() {
        let id = Uuid::from_u128(7);
        assert_eq!(actor(&format!("key:agent-{id}")), (ActorType::Agent, Some(id)));
        assert_eq!(actor(&format!("key:generator-{id}")), (ActorType::Generator, Some(id)));
        assert_eq!(actor("key:agent-smith"), (ActorType::Admin, None));
        assert_eq!(actor("loop:purge"), (ActorType::System, None));
    }
}
