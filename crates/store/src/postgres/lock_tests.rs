//! Every transaction takes its row locks in one order. The conformance suite and
//! its races run on a server that logs each statement, and the log is read:
//! SELECT ... FOR UPDATE, UPDATE and DELETE lock rows of their table, and what a
//! transaction locks first of each table must ascend.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use slipway_app::testing;
use slipway_testkit::postgres::{Options, Postgres};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _};

use crate::{StoreConfig, open};

/// The order. Tables that are not in it are locked by one statement of a
/// transaction, or under the lock of a table that is.
const ORDER: [&str; 5] =
    ["projects", "resources", "nodes", "provisioned_resources", "mesh_addresses"];

/// What the log shows before the text of each line: the session and a bar.
const PREFIX: &str = "%c|";

/// The tables of [`ORDER`] in which a statement locks rows.
fn locked(statement: &str) -> BTreeSet<usize> {
    let mut tables = BTreeSet::new();
    for clause in ["UPDATE ", "DELETE FROM "] {
        for (at, _) in statement.match_indices(clause) {
            if !statement[..at].ends_with("KEY ") {
                tables.extend(rank(&statement[at + clause.len()..]));
            }
        }
    }
    for clause in ["FOR NO KEY UPDATE", "FOR SHARE"] {
        for (at, _) in statement.match_indices(clause) {
            let table = match statement[at + clause.len()..].strip_prefix(" OF ") {
                Some(alias) => aliased(statement, alias),
                None => selected(&statement[..at]),
            };
            tables.extend(table.and_then(rank));
        }
    }
    tables
}

fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

fn rank(text: &str) -> Option<usize> {
    ORDER.iter().position(|table| *table == word(text))
}

/// The table with this alias.
fn aliased<'a>(statement: &'a str, alias: &str) -> Option<&'a str> {
    let alias = word(alias);
    let named = |table: &&&str| statement.contains(&format!(" {table} {alias} "));
    ORDER.iter().find(named).copied()
}

/// The table of the innermost SELECT that ends here.
fn selected(statement: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, c) in statement.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 0 => return None,
            '(' => depth -= 1,
            'F' if depth == 0 && statement[at..].starts_with("FROM ") => {
                return Some(&statement[at + "FROM ".len()..]);
            }
            _ => {}
        }
    }
    None
}

/// What the transactions of a log did: how many locked each set of tables, and
/// what was locked out of order.
#[derive(Debug, Default)]
struct Locks {
    transactions: BTreeMap<BTreeSet<usize>, u32>,
    out_of_order: Vec<String>,
}

impl Locks {
    fn of(log: &str) -> Self {
        let mut locks = Self::default();
        let mut open: HashMap<&str, BTreeSet<usize>> = HashMap::new();
        for line in log.lines() {
            let Some((session, text)) = line.split_once('|') else { continue };
            let Some((_, statement)) = text.split_once(": ") else { continue };
            let statement = statement.trim_start();
            let Some((kind, statement)) = statement.split_once(": ") else { continue };
            if kind != "statement" && !kind.starts_with("execute") {
                continue;
            }
            match word(statement) {
                "BEGIN" => drop(open.insert(session, BTreeSet::new())),
                "COMMIT" | "ROLLBACK" => {
                    let tables = open.remove(session).unwrap_or_default();
                    *locks.transactions.entry(tables).or_default() += 1;
                }
                _ => {
                    let Some(before) = open.get_mut(session) else { continue };
                    for table in locked(statement) {
                        let highest = before.last().copied().unwrap_or(0);
                        if before.insert(table) && table < highest {
                            let (late, early) = (ORDER[table], ORDER[highest]);
                            let found = format!("{late} after {early}: {statement}");
                            locks.out_of_order.push(found);
                        }
                    }
                }
            }
        }
        locks
    }

    /// How many transactions locked rows of these tables, and maybe of others.
    fn with(&self, tables: &[&str]) -> u32 {
        let tables: BTreeSet<_> = tables.iter().filter_map(|table| rank(table)).collect();
        let with = self.transactions.iter().filter(|(locked, _)| tables.is_subset(locked));
        with.map(|(_, count)| count).sum()
    }
}

#[test]
fn the_tables_of_a_statement_are_found() {
    for (statement, tables) in [
        ("SELECT id FROM projects WHERE id = $1 FOR NO KEY UPDATE", &["projects"][..]),
        (
            "SELECT id FROM resources WHERE id IN (SELECT resource_id FROM \
             provisioned_resources WHERE id = ANY($1)) ORDER BY id FOR NO KEY UPDATE",
            &["resources"],
        ),
        (
            "SELECT a.id FROM provisioned_resources a JOIN resources r ON r.id = a.resource_id \
             WHERE a.id = $1 FOR NO KEY UPDATE OF a",
            &["provisioned_resources"],
        ),
        (
            "UPDATE resources SET x = 1 WHERE id = ANY(ARRAY(SELECT id FROM nodes \
             ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))",
            &["resources", "nodes"],
        ),
        ("DELETE FROM mesh_addresses WHERE project_id = $1", &["mesh_addresses"]),
        ("INSERT INTO nodes (id) SELECT id FROM projects", &[]),
        ("SELECT id FROM blueprints FOR SHARE", &[]),
    ] {
        let expected: BTreeSet<_> = tables.iter().filter_map(|table| rank(table)).collect();
        assert_eq!(locked(statement), expected, "{statement}");
    }
}

#[test]
fn a_lock_out_of_order_is_found() {
    let log = "1|LOG:  statement: BEGIN\n\
         2|LOG:  statement: BEGIN\n\
         1|LOG:  execute sqlx_s_1: SELECT id FROM resources FOR NO KEY UPDATE\n\
         2|LOG:  execute sqlx_s_1: SELECT id FROM projects FOR NO KEY UPDATE\n\
         2|LOG:  execute sqlx_s_2: UPDATE nodes SET revision = 1\n\
         2|LOG:  execute sqlx_s_3: UPDATE projects SET revision = 1\n\
         1|LOG:  execute sqlx_s_2: UPDATE projects SET revision = 1\n\
         1|LOG:  statement: COMMIT\n\
         2|LOG:  statement: ROLLBACK\n";
    let locks = Locks::of(log);
    assert_eq!(
        locks.out_of_order,
        ["projects after resources: UPDATE projects SET revision = 1"],
        "a row of a table that was locked before is no new lock"
    );
    assert_eq!(locks.with(&["projects"]), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn locks_are_taken_in_one_order() {
    // A server of its own: the log of every statement would slow down others.
    if slipway_testkit::postgres::shared("locks").await.is_none() {
        return;
    }
    let server = Postgres::start(Options::default()).unwrap().unwrap();
    let database = server.database("locks").await;
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    for setting in ["log_statement = 'all'", "log_parameter_max_length = 0"] {
        let name = format!("ALTER SYSTEM SET {setting}");
        connection.execute(AssertSqlSafe(name)).await.unwrap();
    }
    let prefix = format!("ALTER SYSTEM SET log_line_prefix = '{PREFIX}'");
    connection.execute(AssertSqlSafe(prefix)).await.unwrap();
    connection.execute("SELECT pg_reload_conf()").await.unwrap();
    loop {
        let row = connection.fetch_one("SHOW log_line_prefix").await.unwrap();
        if row.get::<&str, _>(0) == PREFIX {
            break;
        }
        tokio::task::yield_now().await;
    }

    Box::pin(testing::conformance(open(StoreConfig::new(database.url())).await.unwrap())).await;
    let database = server.database("races").await;
    Box::pin(testing::races(open(StoreConfig::new(database.url())).await.unwrap(), 2)).await;

    let log = std::fs::read(server.folder().unwrap().join("log")).unwrap();
    let locks = Locks::of(&String::from_utf8_lossy(&log));
    assert!(locks.out_of_order.is_empty(), "{:#?}", locks.out_of_order);
    // The log was understood: what is known to be locked together was seen.
    assert!(locks.with(&["resources", "nodes", "provisioned_resources"]) > 100, "{locks:?}");
    assert!(locks.with(&["resources", "mesh_addresses"]) > 10, "{locks:?}");
    assert!(locks.with(&["projects"]) > 100, "{locks:?}");
    // Who has locked a project waits for none of its nodes, and only a deletion of the
    // project, its restore and protection wait for its resources. (A declaration wakes an attempt: the
    // one that it inserted, which nobody else sees.)
    assert_eq!(locks.with(&["projects", "nodes"]), 0, "{locks:?}");
}
