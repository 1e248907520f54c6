//! The server that all tests of a run, or at least of a process, share.

use std::env;
use std::io::Write as _;
use std::sync::{Once, OnceLock};

use super::server::{Options, Postgres};

/// Names an existing server.
pub const DATABASE_URL_VARIABLE: &str = "SLIPWAY_TEST_DATABASE_URL";
/// If set to `1`, a test that needs PostgreSQL fails when it is missing.
pub const REQUIRE_VARIABLE: &str = "SLIPWAY_REQUIRE_POSTGRES";

/// The server for `test`; `None` if PostgreSQL is not installed. Then the first
/// test of the process that asked has printed a notice on standard error, and a
/// test that gets `None` returns.
///
/// # Panics
/// When the server cannot be started, and when PostgreSQL is not installed
/// although [`REQUIRE_VARIABLE`] is `1`.
pub async fn shared(test: &str) -> Option<&'static Postgres> {
    // A static is never dropped: the watchdog takes a server that we started
    // down when this process ends.
    static SERVER: OnceLock<Result<Option<Postgres>, String>> = OnceLock::new();
    let ready = tokio::task::spawn_blocking(|| {
        SERVER.get_or_init(|| obtain().map_err(|error| format!("{error:#}")))
    });
    match ready.await {
        Ok(Ok(Some(server))) => Some(server),
        Ok(Ok(None)) => {
            report_absence(test);
            None
        }
        Ok(Err(error)) => panic!("{test}: no PostgreSQL for tests: {error}"),
        Err(error) => panic!("{test}: no PostgreSQL for tests: {error}"),
    }
}

fn obtain() -> anyhow::Result<Option<Postgres>> {
    match env::var(DATABASE_URL_VARIABLE) {
        Ok(url) if !url.is_empty() => Postgres::at(&url).map(Some),
        _ => Postgres::start(Options::default()),
    }
}

fn report_absence(test: &str) {
    assert!(
        env::var(REQUIRE_VARIABLE).as_deref() != Ok("1"),
        "{test}: PostgreSQL is not installed (apt-get install postgresql), \
         and {REQUIRE_VARIABLE}=1 forbids going on without it"
    );
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        // Not `eprintln!`: the test harness captures it and shows it only for
        // failed tests. A closed standard error is no reason to fail.
        let _written = writeln!(
            std::io::stderr(),
            "not run: {test}: PostgreSQL is not installed (apt-get install postgresql); \
             nor any other test of this process that needs it"
        );
    });
}
