//! The table of API keys.

use slipway_app::access::port::{KeyCandidate, KeyTarget};
use slipway_app::ports::store::Page;
use slipway_core::access::api_key::{ApiKey, Previous, Principal};
use slipway_core::access::api_key_rules::{KeySnapshot, KnownText, NewSecret};
use slipway_core::access::holder::Holder;
use slipway_core::access::role::Role;
use slipway_core::ids::{AgentId, ApiKeyId, GeneratorId, ProjectId, Revision};
use slipway_core::nodes::token::SecretHash;
use sqlx::Row as _;
use uuid::Uuid;

use super::catalog::project;
use super::operations::control;
use super::page::{Query, after, as_id, fetch_one, now, readable};
use super::row_set::RowSet;
use super::table::{self, Lock, Table};
use super::{Connection, Row, rows, withdrawn_keys};
use crate::failure::Failure;
use crate::fault::Fault;

/// With the database's clock, by which keys expire: who authenticates needs both,
/// and by one statement.
macro_rules! select {
    () => {
        concat!(
            "SELECT ",
            sql!(now),
            " AS now, k.id, k.revision, k.name, k.owner, k.rotated_by, k.role, k.project_id, k.short, k.hash, \
         k.previous_short, k.previous_hash, k.previous_until, k.created_by, k.created_at, \
         k.rotated_at, k.expires_at, k.revoked_at, (SELECT p.deleted_at FROM projects p \
         WHERE p.id = k.project_id) AS project_deleted_at, k.agent_id, k.generator_id, \
         coalesce((SELECT a.deleted_at FROM fleet_agents a WHERE a.id = k.agent_id), \
         (SELECT g.deleted_at FROM generators g WHERE g.id = k.generator_id)) \
         AS principal_deleted_at FROM api_keys k "
        )
    };
}

/// The prefix of the role of a key that is bound to a project; see the migration.
const BOUND: &str = "project-";

/// The roles of keys that speak for an agent or a generator, which older code reads as none.
const AGENT: &str = "agent";
const GENERATOR: &str = "generator";

impl Table for ApiKey {
    const NAMED: &'static str = concat!(
        select!(),
        "WHERE k.revoked_at IS NULL AND k.name IN (SELECT given.name FROM ",
        rows_from_json!(name: text),
        ")"
    );

    fn fetch_query(reference: &str, _show_deleted: bool) -> Query<'_> {
        sqlx::query(concat!(select!(), "WHERE k.id = $1")).bind(as_id(reference))
    }

    /// The lock of the installation's row covers every key.
    fn lock_query(reference: &str, _lock: Lock) -> Query<'_> {
        Self::fetch_query(reference, true)
    }

    fn page_query(project: &Option<ProjectId>, page: Page<ApiKeyId>) -> Query<'_> {
        sqlx::query(concat!(
            select!(),
            "WHERE k.id > $1 AND ($2 IS NULL OR k.project_id = $2) ORDER BY k.id LIMIT $3"
        ))
        .bind(after(page))
        .bind(project.map(|id| id.as_uuid()))
        .bind(i64::from(page.limit))
    }

    /// Locks the row of the installation first, so that every other decision about
    /// keys waits; then the project, so that it cannot be deleted meanwhile.
    async fn load(connection: &mut Connection, key: &KeyTarget) -> Result<KeySnapshot, Failure> {
        control::lock(connection).await?;
        let (mut project, mut text) = (None, KnownText::default());
        let key = match key {
            KeyTarget::New { name, project: reference } => {
                let holder = by_name(connection, name).await?;
                if let Some(reference) = reference {
                    let found = project::lock(connection, reference).await?;
                    project = found.map(|project| project.id);
                }
                holder
            }
            KeyTarget::Existing(id) => table::lock::<Self>(connection, &id.to_string()).await?,
            KeyTarget::Installed { name, secret } => {
                text = known(connection, secret).await?;
                by_name(connection, name).await?
            }
        };
        let admins = sqlx::query(concat!(
            select!(),
            "WHERE k.role = $1 AND k.revoked_at IS NULL ORDER BY k.id"
        ))
        .bind(Role::Admin.as_str())
        .fetch_all(&mut *connection)
        .await?;
        let now = now(connection).await?;
        let mut usable_admins = readable(ApiKeyId::KIND, &admins, Self::read);
        usable_admins.retain(|key| key.keeps_administration(now));
        Ok(KeySnapshot { now, key, project, usable_admins, text })
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        let project_id = rows::get::<Option<Uuid>>(row, "project_id")?.map(ProjectId::new);
        let text: String = rows::get(row, "role")?;
        let agent = rows::get::<Option<Uuid>>(row, "agent_id")?.map(AgentId::new);
        let generator = rows::get::<Option<Uuid>>(row, "generator_id")?.map(GeneratorId::new);
        let principal = match (agent, generator) {
            (Some(agent), _) => Principal::Agent(agent),
            (None, Some(generator)) => Principal::Generator(generator),
            (None, None) => Principal::Holder,
        };
        // The role and the binding must agree; a row in which they do not is a fault.
        let role = match (principal, project_id) {
            (Principal::Agent(_), _) => (text == AGENT).then_some(Role::Viewer),
            (Principal::Generator(_), _) => (text == GENERATOR).then_some(Role::Viewer),
            (Principal::Holder, Some(_)) => text.strip_prefix(BOUND).and_then(Role::parse),
            (Principal::Holder, None) => Role::parse(&text),
        };
        let previous_short: Option<String> = rows::get(row, "previous_short")?;
        let previous_hash: Option<Vec<u8>> = rows::get(row, "previous_hash")?;
        let previous_until = rows::time_or_null(row, "previous_until")?;
        let previous = match (previous_short, previous_hash, previous_until) {
            (Some(short), Some(bytes), Some(until)) => {
                Some(Previous { short, hash: hash("previous_hash", &bytes)?, until })
            }
            _ => None,
        };
        let bytes: Vec<u8> = rows::get(row, "hash")?;
        Ok(Self {
            id: ApiKeyId::new(rows::get(row, "id")?),
            name: rows::get(row, "name")?,
            owner: rows::get(row, "owner")?,
            role: role.ok_or_else(|| Fault::new("role", "is none that this version knows"))?,
            project_id,
            project_deleted_at: rows::time_or_null(row, "project_deleted_at")?,
            principal,
            principal_deleted_at: rows::time_or_null(row, "principal_deleted_at")?,
            short: rows::get(row, "short")?,
            hash: hash("hash", &bytes)?,
            previous,
            created_by: rows::get(row, "created_by")?,
            created_at: rows::time(row, "created_at")?,
            rotated_at: rows::time_or_null(row, "rotated_at")?,
            rotated_by: rows::get(row, "rotated_by")?,
            expires_at: rows::time_or_null(row, "expires_at")?,
            revoked_at: rows::time_or_null(row, "revoked_at")?,
            revision: Revision(rows::get(row, "revision")?),
        })
    }
}

pub(crate) async fn candidates(
    connection: &mut Connection,
    short: &str,
) -> Result<Vec<KeyCandidate>, Failure> {
    let found = sqlx::query(concat!(
        select!(),
        "WHERE (k.short = $1 OR k.previous_short = $1) AND NOT EXISTS (SELECT 1 FROM projects p \
         WHERE p.id = k.project_id AND p.deleted_at IS NOT NULL) ORDER BY k.id"
    ))
    .bind(short)
    .fetch_all(&mut *connection)
    .await?;
    let read =
        |row: &Row| Ok(KeyCandidate { key: ApiKey::read(row)?, now: rows::time(row, "now")? });
    Ok(readable(ApiKeyId::KIND, &found, read))
}

/// What is known of the text of a key. Reads all keys; only a start asks.
async fn known(connection: &mut Connection, secret: &NewSecret) -> Result<KnownText, Failure> {
    let found = sqlx::query(concat!(
        select!(),
        "WHERE k.short = $1 OR k.hash = $2 OR k.previous_hash = $2 ORDER BY k.id"
    ))
    .bind(&secret.short)
    .bind(&secret.hash.as_bytes()[..])
    .fetch_all(&mut *connection)
    .await?;
    let holders = readable(ApiKeyId::KIND, &found, ApiKey::read);
    // The text of a key that cannot be read counts as withdrawn, not as unknown.
    let withdrawn =
        holders.len() < found.len() || withdrawn_keys::contain(connection, &secret.hash).await?;
    Ok(KnownText { holders, withdrawn })
}

/// The key of this name, even if it is revoked.
async fn by_name(connection: &mut Connection, name: &str) -> Result<Option<ApiKey>, Failure> {
    let query = sqlx::query(concat!(select!(), "WHERE k.name = $1")).bind(name);
    fetch_one(connection, query, "id", ApiKey::read).await
}

/// Who is behind the key of this name; keys are never removed, so it is there if an audit
/// entry names it.
pub(crate) async fn holder(
    connection: &mut Connection,
    name: &str,
) -> Result<Option<Holder>, Failure> {
    let Some(key) = by_name(connection, name).await? else { return Ok(None) };
    let found = sqlx::query(
        "WITH RECURSIVE line (name) AS (SELECT name FROM api_keys WHERE name = $1 UNION \
         SELECT substr(made.maker, 5) FROM line JOIN ( \
            SELECT name, created_by AS maker FROM api_keys UNION ALL \
            SELECT name, rotated_by AS maker FROM api_keys) AS made \
         ON made.name = line.name WHERE made.maker LIKE 'key:%') \
         SELECT name FROM line WHERE name <> $1 ORDER BY name",
    )
    .bind(name)
    .fetch_all(connection)
    .await?;
    let makers = found.iter().map(|row| row.try_get("name"));
    let makers = makers.collect::<Result<_, sqlx::Error>>()?;
    Ok(Some(Holder { key: key.name, owner: key.owner, makers }))
}

fn stored_role(key: &ApiKey) -> String {
    match (key.principal, key.project_id) {
        (Principal::Agent(_), _) => AGENT.to_owned(),
        (Principal::Generator(_), _) => GENERATOR.to_owned(),
        (Principal::Holder, Some(_)) => format!("{BOUND}{}", key.role),
        (Principal::Holder, None) => key.role.to_string(),
    }
}

const fn agent_of(key: &ApiKey) -> Option<AgentId> {
    match key.principal {
        Principal::Agent(id) => Some(id),
        _ => None,
    }
}

const fn generator_of(key: &ApiKey) -> Option<GeneratorId> {
    match key.principal {
        Principal::Generator(id) => Some(id),
        _ => None,
    }
}

fn hash(column: &'static str, bytes: &[u8]) -> Result<SecretHash, Fault> {
    SecretHash::from_slice(bytes).ok_or_else(|| Fault::new(column, "must have 32 bytes"))
}

pub(crate) const INSERT: RowSet<ApiKey> = insert_rows!(guarded, "api_keys", |key: &ApiKey| {
    id: uuid = key.id,
    name: text = key.name,
    owner: text = key.owner,
    role: text = stored_role(key),
    project_id: uuid = key.project_id,
    agent_id: uuid = agent_of(key),
    generator_id: uuid = generator_of(key),
    short: text = key.short,
    hash: bytes = key.hash.as_bytes(),
    created_by: text = key.created_by,
    created_at: time = key.created_at,
    expires_at: time = key.expires_at,
});

pub(crate) const UPDATE: RowSet<ApiKey> = update_rows!(undated, "api_keys" by id, |key: &ApiKey| {
    role: text = stored_role(key),
    project_id: uuid = key.project_id,
    short: text = key.short,
    hash: bytes = key.hash.as_bytes(),
    previous_short: text = key.previous.as_ref().map(|previous| &previous.short),
    previous_hash: bytes = key.previous.as_ref().map(|previous| previous.hash.as_bytes()),
    previous_until: time = key.previous.as_ref().map(|previous| previous.until),
    rotated_at: time = key.rotated_at,
    rotated_by: text = key.rotated_by,
    expires_at: time = key.expires_at,
    revoked_at: time = key.revoked_at,
});
