//! Tens of thousands of rows, inserted by SQL because declaring is not
//! measured. They equal what the use-cases would have written.

use uuid::Uuid;

use crate::database::Pool;

/// The state of the new rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Declared and due now.
    Pending,
    /// Ready with their nodes, due now.
    Ready,
    /// Ready with their nodes, due spread over one sweep of 30 s.
    Idle,
}

/// The seed has other blueprints, too.
const MADE_FROM: &str = "(SELECT v.id FROM blueprint_versions v JOIN blueprints b \
     ON b.id = v.blueprint_id WHERE b.slug = 'local-node') AS blueprint_versions";

/// The resource with this number, of those that [`make`] inserts from 1 on.
pub(crate) const fn resource(number: u32) -> Uuid {
    Uuid::from_u128((0x0000_0000_0000_7000_80a1 << 48) | number as u128)
}

/// Its attempt.
pub(crate) const fn attempt(number: u32) -> Uuid {
    Uuid::from_u128((0x0000_0000_0000_7000_80b2 << 48) | number as u128)
}

/// An id in the database's syntax.
pub(crate) fn literal(pool: &Pool, id: Uuid) -> String {
    match pool {
        Pool::Postgres(_) => format!("'{id}'::uuid"),
        Pool::Sqlite(_) => format!("x'{}'", id.simple()),
    }
}

/// Inserts `count` resources, each with its first attempt.
pub(crate) async fn make(pool: &Pool, count: u32, state: State) -> anyhow::Result<()> {
    let phase = if state == State::Pending { "Pending" } else { "Ready" };
    let numbers = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers \
         WHERE n < {count}) "
    );
    let due = match state {
        State::Pending | State::Ready => "NOW()".to_owned(),
        State::Idle => "LATER(n % 30000)".to_owned(),
    };
    let token = if state == State::Pending { "NULL" } else { "ID(c3)" };
    let mut statements = vec![
        format!(
            "INSERT INTO resources (id, project_id, handle, labels) {numbers} \
             SELECT ID(a1), projects.id, 'bench-' || n, '{{}}' FROM numbers, projects"
        ),
        format!(
            "INSERT INTO provisioned_resources (id, resource_id, project_id, \
             blueprint_version_id, cloud_credential_id, attempt, status, xr_name, \
             bootstrap_token_id, parameter_values, due_at, partition) {numbers} \
             SELECT ID(b2), ID(a1), projects.id, blueprint_versions.id, cloud_credentials.id, \
             1, '{phase}', 'bench-' || n, {token}, '{{}}', {due}, clusters.id \
             FROM numbers, projects, {MADE_FROM}, cloud_credentials, clusters"
        ),
        format!(
            "INSERT INTO state_changes (subject_id, revision, to_state, why) {numbers} \
             SELECT ID(b2), 1, '{phase}', 'declared' FROM numbers"
        ),
    ];
    if state != State::Pending {
        statements.push(format!(
            "INSERT INTO bootstrap_tokens (id, project_id, provisioned_resource_id, kind, hash, \
             expires_at, hard_expires_at, consumed_at, consumed_by_node_id, \
             consumed_public_key) {numbers} \
             SELECT ID(c3), projects.id, ID(b2), 'node', HASH(n), LATER(3600000), \
             LATER(86400000), NOW(), ID(d4), HASH(n) FROM numbers, projects"
        ));
        statements.push(format!(
            "INSERT INTO nodes (id, project_id, resource_id, provisioned_resource_id, \
             bootstrap_token_id, hostname, public_key, key_hash, capabilities, mesh_host, \
             mesh_ip) {numbers} \
             SELECT ID(d4), projects.id, ID(a1), ID(b2), ID(c3), 'bench', HASH(n), HASH(n), \
             '[\"drain\"]', n + 1, '100.64.' || ((n + 1) / 256) || '.' || ((n + 1) % 256) \
             FROM numbers, projects"
        ));
    }
    for statement in statements {
        pool.run(spelled(pool, &statement)).await?;
    }
    analyse(pool).await
}

/// Does what autovacuum would have done for rows inserted over a longer time.
pub(crate) async fn analyse(pool: &Pool) -> anyhow::Result<()> {
    if let Pool::Postgres(_) = pool {
        pool.run("VACUUM ANALYZE".to_owned()).await?;
    }
    Ok(())
}

/// Gives the nodes their addresses in the project's mesh.
pub(crate) async fn join_mesh(pool: &Pool) -> anyhow::Result<()> {
    let statement = "INSERT INTO mesh_addresses (project_id, host, node_id, hostname, public_key) \
         SELECT project_id, mesh_host, id, hostname, public_key FROM nodes";
    pool.run(statement.to_owned()).await
}

/// Inserts resources in Enrolling, each with a token; `hashes` lists number and
/// hash of each as SQL values.
pub(crate) async fn make_waiting(pool: &Pool, hashes: &str) -> anyhow::Result<()> {
    let given = format!("WITH given (n, hash) AS (VALUES {hashes}) ");
    let hash = match pool {
        Pool::Postgres(_) => "decode(hash, 'hex')",
        Pool::Sqlite(_) => "unhex(hash)",
    };
    for statement in [
        format!(
            "INSERT INTO resources (id, project_id, handle, labels) {given} \
             SELECT ID(e5), projects.id, 'waiting-' || n, '{{}}' FROM given, projects"
        ),
        format!(
            "INSERT INTO provisioned_resources (id, resource_id, project_id, \
             blueprint_version_id, cloud_credential_id, attempt, status, xr_name, \
             bootstrap_token_id, parameter_values, due_at, partition) {given} \
             SELECT ID(f6), ID(e5), projects.id, blueprint_versions.id, cloud_credentials.id, \
             1, 'Enrolling', 'waiting-' || n, ID(a7), '{{}}', LATER(600000), clusters.id \
             FROM given, projects, {MADE_FROM}, cloud_credentials, clusters"
        ),
        format!(
            "INSERT INTO bootstrap_tokens (id, project_id, provisioned_resource_id, kind, hash, \
             expires_at, hard_expires_at) {given} \
             SELECT ID(a7), projects.id, ID(f6), 'node', {hash}, LATER(3600000), \
             LATER(86400000) FROM given, projects"
        ),
    ] {
        pool.run(spelled(pool, &statement)).await?;
    }
    analyse(pool).await
}

/// Replaces `ID(kk)`, `HASH(n)`, `NOW()` and `LATER(milliseconds)` by the
/// database's syntax. Ids consist of a mark for their kind and the row number.
fn spelled(pool: &Pool, statement: &str) -> String {
    const PREFIX: &str = "000000000000700080";
    let mut statement = statement.to_owned();
    for kind in ["a1", "b2", "c3", "d4", "e5", "f6", "a7"] {
        let id = match pool {
            Pool::Postgres(_) => {
                format!("('{PREFIX}{kind}' || lpad(to_hex(n), 12, '0'))::uuid")
            }
            Pool::Sqlite(_) => format!("unhex('{PREFIX}{kind}' || printf('%012x', n))"),
        };
        statement = statement.replace(&format!("ID({kind})"), &id);
    }
    let (now, later, hash) = match pool {
        Pool::Postgres(_) => (
            "clock_timestamp()",
            "clock_timestamp() + interval '1 millisecond' * (",
            "decode(lpad(to_hex(n), 64, '0'), 'hex')",
        ),
        Pool::Sqlite(_) => (
            "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
            "CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 1000 * (",
            "unhex(printf('%064x', n))",
        ),
    };
    let statement =
        statement.replace("NOW()", now).replace("HASH(n)", hash).replace("LATER(", later);
    match pool {
        Pool::Postgres(_) => statement
            .replace("'{}'", "'{}'::jsonb")
            .replace("'[\"drain\"]'", "'[\"drain\"]'::jsonb"),
        Pool::Sqlite(_) => statement,
    }
}
