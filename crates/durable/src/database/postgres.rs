//! A gateway to a PostgreSQL server: how transactions begin, and pools that notice a server
//! that does not answer.

use std::time::Duration;

use sqlx::Postgres;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

use super::gateway::{Begin, Gateway};
use super::health::IdlePing;
use super::pools::Source;

/// How transactions begin.
pub const BEGIN: Begin =
    Begin { write: "BEGIN", read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" };

/// How long a caller waits for a connection, whether all are busy or the server
/// is gone. A person may be waiting, so it is short: the answer is that the database is
/// not available, and a loop tries again by itself.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(3);

/// A connection that was idle for longer is pinged before it is used. A ping
/// each time would cost a round trip for every statement. A connection that
/// broke within this time fails at its first use, with the error that the
/// database is not available.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// A gateway with up to `max_connections`, opened when they are needed.
pub fn gateway(
    options: PgConnectOptions,
    max_connections: u32,
    statement_limit: Duration,
) -> Gateway<Postgres> {
    let source = Source::Replaceable {
        make: Box::new(move |ping| pool(&options, max_connections, ping)),
        // Half of the pool at most, so that the other half is always free
        // for the rest.
        idle: usize::try_from(max_connections / 2).unwrap_or(0),
        fresh_for: FRESH_FOR,
    };
    Gateway::new(source, BEGIN, statement_limit)
}

fn pool(options: &PgConnectOptions, max_connections: u32, ping: IdlePing) -> PgPool {
    PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_LIMIT)
        .test_before_acquire(false)
        .before_acquire(move |connection, metadata| {
            let ping = ping.clone();
            Box::pin(async move {
                if metadata.idle_for >= FRESH_FOR {
                    ping.send(connection).await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options.clone())
}
