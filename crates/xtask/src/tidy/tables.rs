//! Checks that only its room writes a table.
//!
//! The room of a table is in the name of the migration that creates it:
//! `0004_nodes.up.sql`. A statement that inserts, updates or deletes its rows stands in
//! `crates/store/src/shared/nodes/`; other rooms call a function of that room.
//!
//! Two kinds of exceptions. A commit writes the [`KERNEL`]'s tables for subjects of every
//! room, so files beside the rooms may write them too. The [`RECORD`] of a tick writes
//! several tables by one statement of each database.
//!
//! The check reads text. It finds a table that a statement, or a macro that writes, names
//! in place, and none that a variable names.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::Tree;

const MIGRATIONS: &str = "crates/store/migrations/";
const STORE: &str = "crates/store/src/";
const ROOMS: &str = "crates/store/src/shared/";

/// Tables with a row for each subject of any kind.
const KERNEL: [&str; 2] = ["blockers", "state_changes"];

/// One statement writes an attempt, its history, its event and its audit entry, without a
/// lock and in one round trip (docs/adr/0004-records-without-a-lock.md).
const RECORD: [&str; 2] =
    ["crates/store/src/postgres/record.rs", "crates/store/src/sqlite/record.rs"];

/// Statements of the shipped store that write a table of another room, and migrations that
/// no room is named for.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut rooms: BTreeMap<&str, &str> = BTreeMap::new();
    for (path, text) in tree.files() {
        let Some(room) = room_of_migration(path) else { continue };
        if !tree.contains(&format!("{ROOMS}{room}")) {
            wrong.push(format!("{path}: `{room}` is no room of {ROOMS}; name it for one"));
        }
        rooms.extend(created(text).map(|table| (table, room)));
    }
    let macros = writing_macros(tree);
    for (path, text) in tree.source_files().filter(|(path, _)| is_shipped(path)) {
        for (line, table) in written(text, &macros) {
            let Some(room) = rooms.get(table).filter(|room| !may_write(path, table, room)) else {
                continue;
            };
            wrong.push(format!(
                "{path}:{line}: writes `{table}`, a table of the room `{room}`; \
                 call a function of {ROOMS}{room}/"
            ));
        }
    }
    wrong
}

/// `0009_broker_deadlines.up.sql` is of the room `broker`.
fn room_of_migration(path: &str) -> Option<&str> {
    let (_, name) = path.strip_prefix(MIGRATIONS)?.split_once('/')?;
    name.strip_suffix(".up.sql")?.split('_').nth(1)
}

/// The tables that a migration creates.
fn created(text: &str) -> impl Iterator<Item = &str> {
    let names = text.lines().filter_map(|line| line.strip_prefix("CREATE TABLE "));
    names.filter_map(|rest| words(rest).next().map(|(_, word)| word))
}

fn is_shipped(path: &str) -> bool {
    path.starts_with(STORE)
        && !["_tests.rs", "/tests.rs"].iter().any(|end| path.ends_with(end))
        && !path.contains("/tests/")
}

fn may_write(path: &str, table: &str, room: &str) -> bool {
    let Some(inside) = path.strip_prefix(ROOMS) else { return RECORD.contains(&path) };
    match inside.split_once('/') {
        Some((folder, _)) => folder == room,
        None => KERNEL.contains(&table),
    }
}

/// The lines and names of all tables that this text writes, before its tests. A name
/// need not be that of a table.
fn written<'a>(text: &'a str, macros: &BTreeSet<&str>) -> Vec<(usize, &'a str)> {
    let all: Vec<(usize, &str)> = words(text).collect();
    let mut found = Vec::new();
    for (index, (line, word)) in all.iter().enumerate() {
        let after = all.get(index + 1..).unwrap_or_default();
        let named = match *word {
            "INTO" | "UPDATE" | "TRUNCATE" => after.iter().take(1),
            "DELETE" if after.first().is_some_and(|(_, next)| *next == "FROM") => {
                after[1..].iter().take(1)
            }
            // The table may follow the name of a dialect.
            word if word.strip_suffix('!').is_some_and(|name| macros.contains(name)) => {
                after.iter().take(2)
            }
            _ => continue,
        };
        found.extend(named.map(|(_, name)| (*line, *name)));
    }
    found
}

/// Macros of the store and of `durable` that write the table of a parameter.
fn writing_macros(tree: &Tree) -> BTreeSet<&str> {
    let mut macros = BTreeSet::new();
    let defines = |path: &str| path.starts_with(STORE) || path.starts_with("crates/durable/src/");
    for (_, text) in tree.source_files().filter(|(path, _)| defines(path)) {
        let definitions = text.split("macro_rules! ").skip(1);
        macros.extend(definitions.filter_map(|definition| {
            let writes = written(definition, &BTreeSet::new()).iter().any(|(_, name)| {
                name.strip_prefix('$').is_some_and(|name| name.starts_with(char::is_alphabetic))
            });
            words(definition).next().filter(|_| writes).map(|(_, name)| name)
        }));
    }
    macros
}

/// The words of a text with their lines, without comments and tests. `$` and `!` are
/// letters here: `$table`, `update_sql!`.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let shipped = text.lines().take_while(|line| *line != "#[cfg(test)]").enumerate();
    shipped.filter(|(_, line)| !line.trim_start().starts_with("//")).flat_map(|(index, line)| {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '!');
        let words = line.split(move |c| !is_part(c)).filter(|word| !word.is_empty());
        words.map(move |word| (index + 1, word))
    })
}

#[cfg(test)]
mod tests {
    use super::{Tree, check};

    const ACCESS: &str = "crates/store/src/shared/access/audit.rs";
    const NODES: &str = "crates/store/src/shared/nodes/write.rs";
    const MACROS: &str = "crates/durable/src/statements.rs";

    /// What is wrong if this file says this.
    fn wrong(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[
            ("crates/store/migrations/sqlite/0001_nodes.up.sql", "CREATE TABLE nodes (\n);\n"),
            (
                "crates/store/migrations/sqlite/0002_access_audit.up.sql",
                "CREATE TABLE audit (\n);\nCREATE TABLE blockers (\n);\n",
            ),
            (ACCESS, "//! Access.\n"),
            (NODES, "//! Nodes.\n"),
            (MACROS, "macro_rules! touch {\n    ($table:literal) => { \"UPDATE \", $table }\n}\n"),
            (path, text),
        ]))
    }

    #[test]
    fn a_write_outside_the_room_of_its_table_is_found() {
        for statement in [
            "\"INSERT INTO nodes (id) VALUES ($1)\"",
            "\"INSERT INTO \\\n nodes (id) VALUES ($1)\"",
            "sql!(\"UPDATE \", \"nodes\", \" SET id = \", now)",
            "\"WITH gone AS (DELETE FROM nodes RETURNING id) SELECT id FROM gone\"",
            "touch!(\"nodes\")",
            "slipway_durable::touch!(sqlite, \"nodes\")",
        ] {
            let found = wrong(ACCESS, &format!("//! Access.\nconst SQL: &str = {statement};\n"));
            assert_eq!(found.len(), 1, "{statement}: {found:?}");
            assert!(found[0].starts_with(&format!("{ACCESS}:2: writes `nodes`")), "{found:?}");
            assert!(found[0].contains("`nodes`; call a function of"), "{found:?}");
            assert!(wrong(NODES, statement).is_empty(), "{statement}");
        }
    }

    #[test]
    fn reads_tests_and_comments_write_nothing() {
        for text in [
            "\"SELECT id FROM nodes FOR UPDATE OF nodes\"",
            "\"ON CONFLICT DO UPDATE SET nodes = 1\"",
            "// \"DELETE FROM nodes\"",
            "#[cfg(test)]\nmod tests {\n    \"DELETE FROM nodes\"\n}\n",
            "read!(\"nodes\")",
        ] {
            assert_eq!(wrong(ACCESS, text), Vec::<String>::new(), "{text}");
        }
        let tests = "crates/store/src/lock_tests.rs";
        assert!(wrong(tests, "\"DELETE FROM nodes\"").is_empty());
    }

    #[test]
    fn the_kernel_writes_its_own_tables_and_no_others() {
        let kernel = "crates/store/src/shared/commit.rs";
        assert!(wrong(kernel, "\"DELETE FROM blockers\"").is_empty());
        assert_eq!(wrong(kernel, "\"DELETE FROM nodes\"").len(), 1);
        // Another room is not the kernel.
        assert_eq!(wrong(NODES, "\"DELETE FROM blockers\"").len(), 1);
    }

    #[test]
    fn only_the_record_of_a_tick_writes_tables_of_several_rooms() {
        let statement = "\"UPDATE nodes SET id = 1; DELETE FROM audit\"";
        assert!(wrong("crates/store/src/sqlite/record.rs", statement).is_empty());
        assert_eq!(wrong("crates/store/src/sqlite/backup.rs", statement).len(), 2);
    }

    #[test]
    fn a_migration_is_named_for_a_room() {
        let found = wrong("crates/store/migrations/sqlite/0003_things.up.sql", "");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`things` is no room"), "{found:?}");
    }
}
