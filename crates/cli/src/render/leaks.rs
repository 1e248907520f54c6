//! Leaks: a line each, one with all that is known of it, and what a look at
//! everything came to.

use slipway_wire::leaks::{Leak, LeakLook};

use super::table::{facts, optional_time, or_dash, rows, time};
use crate::terminal::clean;

pub(crate) fn leaks(leaks: &[Leak], width: Option<u16>) -> String {
    let line = |leak: &Leak| {
        let seen = leak.last_seen_at.as_ref().unwrap_or(&leak.found_at);
        vec![
            leak.kind.clone(),
            object(leak),
            or_dash(leak.cluster.as_deref()),
            time(&leak.found_at),
            time(seen),
            leak.remedy.clone(),
            leak.id.clone(),
        ]
    };
    let headings = ["KIND", "OBJECT", "CLUSTER", "SINCE", "LAST SEEN", "WHAT TO DO", "ID"];
    rows(&headings, leaks.iter().map(line).collect(), width)
}

/// Where the object stands, or whose it is where that is all that is known.
pub(crate) fn object(leak: &Leak) -> String {
    match (&leak.namespace, &leak.name, &leak.provisioned_resource_id) {
        (Some(namespace), Some(name), _) => format!("{namespace}/{name}"),
        (_, _, Some(id)) => format!("that of attempt {id}"),
        _ => "an unknown object".to_owned(),
    }
}

pub(crate) fn leak(leak: &Leak, width: Option<u16>) -> String {
    let evidence = (!leak.evidence.is_null()).then(|| leak.evidence.to_string());
    facts(
        vec![
            ("kind", Some(leak.kind.clone())),
            ("id", Some(leak.id.clone())),
            ("state", Some(leak.state.clone())),
            ("object", Some(object(leak))),
            ("uid", leak.uid.clone()),
            ("cluster", leak.cluster.clone()),
            ("attempt", leak.provisioned_resource_id.clone()),
            ("since", Some(time(&leak.found_at))),
            ("last seen", optional_time(leak.last_seen_at.as_ref())),
            ("evidence", evidence),
            ("what to do", Some(leak.remedy.clone())),
            ("removal asked", optional_time(leak.removal_requested_at.as_ref())),
            ("removal by", leak.removal_requested_by.clone()),
            ("removal because", leak.removal_reason.clone()),
            ("resolved", optional_time(leak.resolved_at.as_ref())),
            ("resolved by", leak.resolved_by.clone()),
            ("resolution", leak.resolution.clone()),
        ],
        width,
    )
}

pub(crate) fn looks(looks: &[LeakLook], width: Option<u16>) -> String {
    if looks.is_empty() {
        return "this server serves no cluster; ask the one that does".to_owned();
    }
    let mut parts = Vec::new();
    for look in looks {
        parts.push(format!(
            "cluster {}: {} objects of ours, {} of others, {} resources woken, {} leaks over",
            look.cluster, look.objects, look.foreign, look.woken, look.resolved
        ));
        if let Some(error) = &look.error {
            parts.push(format!("could not be looked at as a whole: {}", clean(error)));
        }
        parts.extend(look.unreadable.iter().map(|text| format!("cannot be read: {}", clean(text))));
        if !look.leaks.is_empty() {
            parts.push(leaks(&look.leaks, width));
        }
        if !look.suspected.is_empty() {
            let line = |suspected: &slipway_wire::leaks::LeakSuspicion| {
                vec![
                    suspected.kind.clone(),
                    format!("{}/{}", suspected.namespace, suspected.name),
                    time(&suspected.first_seen_at),
                    time(&suspected.counts_from),
                ]
            };
            let headings = ["SUSPECTED", "OBJECT", "FIRST SEEN", "A LEAK IF SEEN AFTER"];
            parts.push(rows(&headings, look.suspected.iter().map(line).collect(), width));
        }
    }
    parts.join("\n")
}
