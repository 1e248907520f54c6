//! Checks whether the database answers, fits this binary, accepts writes and
//! commits durably.

use std::time::Duration;

use slipway_core::Timestamp;
use slipway_store::{Inspection, Location, OpenError, Schema, StoreConfig};

use super::finding::{Area, Finding};
use crate::config::Config;

/// Shorter than at a start, because a person waits for the answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Also returns the time of the database.
pub(super) async fn inspect(config: &Config) -> (Vec<Finding>, Option<Timestamp>) {
    let mut area = Area::new("database");
    let store = StoreConfig {
        connect_limit: config.database_timeout.min(TIMEOUT),
        max_connections: config.database_connections,
        ..StoreConfig::new(config.database_url.expose())
    };
    let place = match slipway_store::locate(&store) {
        Ok(Location::Sqlite(path)) => path.display().to_string(),
        Ok(Location::Postgres(server)) => server,
        Err(error) => {
            area.problem("reachable", error.to_string(), "correct `database_url`");
            return (area.into_findings(), None);
        }
    };
    let now = match slipway_store::inspect(&store).await {
        Ok(Some(seen)) => {
            area.ok("reachable", format!("{}, {place}", seen.version));
            describe(&mut area, &seen);
            Some(seen.now)
        }
        Ok(None) => {
            area.ok("reachable", format!("{place} is not there yet; the first start makes it"));
            None
        }
        Err(error) => {
            let remedy = remedy(&error);
            area.problem("reachable", error.to_string(), remedy);
            None
        }
    };
    (area.into_findings(), now)
}

fn remedy(error: &OpenError) -> &'static str {
    match error {
        OpenError::DatabaseUnreachable { .. } => {
            "start the server, or correct host and port of `database_url`"
        }
        OpenError::DatabaseRefused { .. } => "correct user, password or name in `database_url`",
        OpenError::DatabaseConnectionsExhausted { .. } => {
            "raise `max_connections` of the server, or lower `database_connections`"
        }
        OpenError::Sqlite(_) => {
            "check the permissions of the file; if it is damaged, `slipway restore` a backup"
        }
        _ => "the text says what is wrong; start with RUST_LOG=debug to see more",
    }
}

fn describe(area: &mut Area, seen: &Inspection) {
    match &seen.schema {
        None => area.ok("migrations", "none yet; the first start makes the schema"),
        Some(Schema { refused: Some(error), .. }) => {
            let remedy = "use the binary that fits the database, or an empty database";
            area.problem("migrations", error.to_string(), remedy);
        }
        Some(schema) if schema.applied < schema.known => area.warning(
            "migrations",
            format!("the schema is {}, this binary brings {}", schema.applied, schema.known),
            "take a backup, then start: it migrates by itself",
        ),
        Some(schema) if schema.applied > schema.known => area.warning(
            "migrations",
            format!("the schema is {}, newer than this binary's {}", schema.applied, schema.known),
            "finish the upgrade: this binary can read it, and is the older one",
        ),
        Some(schema) => area.ok("migrations", format!("up to date, schema {}", schema.applied)),
    }
    match &seen.unwritable {
        None => area.ok("writable", "it takes writes"),
        Some(why) => area.problem(
            "writable",
            format!("it takes no writes: {why}"),
            "name the primary server, or let this user write the file and its folder",
        ),
    }
    let (lossy, safe): (Vec<_>, Vec<_>) =
        seen.durability.iter().partition(|setting| setting.unsafe_value);
    let shown = |settings: &[&slipway_store::Setting]| {
        let each = settings.iter().map(|setting| format!("{} {}", setting.name, setting.value));
        each.collect::<Vec<_>>().join(", ")
    };
    if lossy.is_empty() {
        area.ok("durability", shown(&safe));
    } else {
        area.problem(
            "durability",
            format!("a commit may be lost with the power: {}", shown(&lossy)),
            "turn these on in the database's own configuration",
        );
    }
}
