//! An idle poll of an agent is one statement after that of its key, and another one for the
//! contents, whatever the number of its stacks: counted in the log of the server.

use std::time::Duration;

use slipway_app::testing::IdleAgent;
use slipway_testkit::postgres::{Options, Postgres};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::{StoreConfig, open};

/// The statements between two marks in the log, without those of the marks.
fn between<'a>(log: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let begin = log.find(from).expect("the first mark");
    let end = begin + log[begin..].find(to).expect("the second mark");
    let lines = log[begin..end].lines().skip(1);
    let is_statement =
        |line: &&str| line.contains("LOG:  statement: ") || line.contains("LOG:  execute ");
    // The last line is the beginning of the second mark.
    lines.filter(is_statement).filter(|line| !line.ends_with("SELECT '")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_idle_poll_is_one_statement_and_its_contents_another() {
    // A server of its own, whose log nobody else writes.
    if slipway_testkit::postgres::shared("polls").await.is_none() {
        return;
    }
    let server = Postgres::start(Options::default()).unwrap().unwrap();
    let database = server.database("polls").await;
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    let agent = IdleAgent::new(open(StoreConfig::new(database.url())).await.unwrap(), 30).await;
    for setting in ["log_statement = 'all'", "log_parameter_max_length = 0"] {
        let statement = format!("ALTER SYSTEM SET {setting}");
        connection.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    connection.execute("SELECT pg_reload_conf()").await.unwrap();
    let read = || {
        let log = std::fs::read(server.folder().unwrap().join("log")).unwrap();
        String::from_utf8_lossy(&log).into_owned()
    };
    // Sessions notice the setting with their next statement.
    let minute = Duration::from_secs(60);
    slipway_testkit::wait::until(minute, "the server logs statements", async || {
        connection.execute("SELECT 'mark of the setting'").await.unwrap();
        agent.poll(false).await;
        let log = read();
        log.contains("mark of the setting") && log.contains("FROM control c LEFT JOIN")
    })
    .await;
    let counted = async |connection: &mut PgConnection, knows_tag: bool| {
        let (from, to) = match knows_tag {
            true => ("mark of a tag", "mark after a tag"),
            false => ("mark of contents", "mark after contents"),
        };
        connection.execute(AssertSqlSafe(format!("SELECT '{from}'"))).await.unwrap();
        agent.poll(knows_tag).await;
        connection.execute(AssertSqlSafe(format!("SELECT '{to}'"))).await.unwrap();
        let log = read();
        let found: Vec<String> =
            between(&log, from, to).into_iter().map(ToOwned::to_owned).collect();
        found
    };
    let idle = counted(&mut connection, true).await;
    assert_eq!(idle.len(), 2, "its key and its offer: {idle:#?}");
    let whole = counted(&mut connection, false).await;
    assert_eq!(whole.len(), 3, "and the contents: {whole:#?}");
}
