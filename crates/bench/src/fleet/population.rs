//! A generator with its stacks and their objects, inserted by SQL because submitting them is
//! not measured. Both sides get the same ids, names and contents, in the same order.

use uuid::Uuid;

use crate::database::Pool;

/// How many stacks a generator has.
pub(crate) const STACKS: u32 = 1_000;
/// How many objects a stack has, each of [`CONTENT`] bytes.
pub(crate) const OBJECTS: u32 = 20;
/// The length of the content of an object.
pub(crate) const CONTENT: usize = 1_024;
/// The label that agents and stacks share.
pub(crate) const LABEL: &str = "bench";

/// Marks of the ids of each kind, see [`id`].
pub(crate) const STACK: &str = "f1";
pub(crate) const OBJECT: &str = "f2";
pub(crate) const TAG: &str = "f3";

/// An id that consists of a mark for its kind and a number that SQL computes.
pub(crate) fn id(pool: &Pool, mark: &str, number: &str) -> String {
    const PREFIX: &str = "000000000000700080";
    match pool {
        Pool::Postgres(_) => format!("('{PREFIX}{mark}' || lpad(to_hex({number}), 12, '0'))::uuid"),
        Pool::Sqlite(_) => format!("unhex('{PREFIX}{mark}' || printf('%012x', {number}))"),
    }
}

/// A known id as SQL.
pub(crate) fn literal(pool: &Pool, id: Uuid) -> String {
    match pool {
        Pool::Postgres(_) => format!("'{id}'::uuid"),
        Pool::Sqlite(_) => format!("unhex('{}')", id.simple()),
    }
}

/// The numbers from 1 to `last`, as `n`.
pub(crate) fn numbers(last: u32) -> String {
    format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers \
         WHERE n < {last}) "
    )
}

/// A ConfigMap of [`CONTENT`] bytes that differs in its last digits, as SQL over the number of
/// the object `n`. Shorter than what PostgreSQL compresses.
pub(crate) fn content() -> String {
    const HEAD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bench}\ndata:\n  v: ";
    const DIGITS: usize = 9;
    let filling: String = ('a'..='z').cycle().take(CONTENT - HEAD.len() - DIGITS).collect();
    format!("'{HEAD}{filling}' || (100000000 + n)")
}

/// A text as long as a checksum, as SQL over `n`.
pub(crate) fn checksum(pool: &Pool) -> &'static str {
    match pool {
        Pool::Postgres(_) => "lpad(to_hex(n), 64, '0')",
        Pool::Sqlite(_) => "printf('%064x', n)",
    }
}

/// Gives a generator of ours its stacks, with objects and the label.
pub(crate) async fn submit(pool: &Pool, generator: Uuid) -> anyhow::Result<()> {
    let generator = literal(pool, generator);
    let (stacks, objects) = (numbers(STACKS), numbers(STACKS * OBJECTS));
    let (stack, tag) = (id(pool, STACK, "n"), id(pool, TAG, "n"));
    let (object, owner) =
        (id(pool, OBJECT, "n"), id(pool, STACK, &format!("(n - 1) / {OBJECTS} + 1")));
    let (content, checksum) = (content(), checksum(pool));
    for statement in [
        format!(
            "INSERT INTO stacks (id, project_id, generator_id, name, last_sequence) {stacks} \
             SELECT {stack}, g.project_id, g.id, 'stack-' || n, {OBJECTS} \
             FROM numbers, generators g WHERE g.id = {generator}"
        ),
        format!(
            "INSERT INTO deployment_objects (id, stack_id, sequence_id, yaml_content, \
             yaml_checksum, is_deletion_marker) {objects} \
             SELECT {object}, {owner}, (n - 1) % {OBJECTS} + 1, {content}, {checksum}, 0 \
             FROM numbers"
        ),
        format!(
            "INSERT INTO fleet_labels (id, owner_kind, owner_id, label) {stacks} \
             SELECT {tag}, 'stack', {stack}, '{LABEL}' FROM numbers"
        ),
    ] {
        pool.run(statement).await?;
    }
    crate::population::analyse(pool).await
}
