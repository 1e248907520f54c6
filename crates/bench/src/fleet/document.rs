//! The other side: the scheme of the document about soft deletion, written from its text. A
//! trigger on generators marks their stacks, a trigger on each stack marks all of its objects
//! and inserts a marker. In a database of its own, with the durability of ours.
//!
//! Where the document leaves a choice, the cheaper one is taken: the cascade marks nothing
//! twice, `updated_at` stays as it was, nothing is announced or audited, and objects lie beside
//! the others of their stack.

use std::time::{Duration, Instant};

use anyhow::ensure;
use sqlx::Row as _;
use uuid::Uuid;

use super::population::{
    LABEL, OBJECT, OBJECTS, STACK, STACKS, TAG, checksum, content, id, literal, numbers,
};
use crate::database::{Database, Kind, Pool};

/// Tables and indexes; the words in capitals are those of the database.
const SCHEMA: &str = "
CREATE TABLE generators (
    id UUID PRIMARY KEY, created_at TIME NOT NULL DEFAULT NOW, updated_at TIME NOT NULL DEFAULT NOW,
    deleted_at TIME, name TEXT NOT NULL, description TEXT);
CREATE UNIQUE INDEX unique_generator_name ON generators (name) WHERE deleted_at IS NULL;
CREATE INDEX idx_generators_deleted_at ON generators (deleted_at);
CREATE TABLE stacks (
    id UUID PRIMARY KEY, created_at TIME NOT NULL DEFAULT NOW, updated_at TIME NOT NULL DEFAULT NOW,
    deleted_at TIME, name TEXT NOT NULL, description TEXT,
    generator_id UUID NOT NULL REFERENCES generators (id));
CREATE UNIQUE INDEX unique_stack_name ON stacks (name) WHERE deleted_at IS NULL;
CREATE INDEX idx_stacks_deleted_at ON stacks (deleted_at);
CREATE INDEX idx_stacks_generator_id ON stacks (generator_id);
CREATE TABLE deployment_objects (
    SERIAL, id UUID NOT NULL UNIQUE DEFAULT RANDOM, created_at TIME NOT NULL DEFAULT NOW,
    updated_at TIME NOT NULL DEFAULT NOW, deleted_at TIME,
    stack_id UUID NOT NULL REFERENCES stacks (id), yaml_content TEXT NOT NULL,
    yaml_checksum TEXT NOT NULL DEFAULT '', submitted_at TIME NOT NULL DEFAULT NOW,
    is_deletion_marker BOOLEAN NOT NULL DEFAULT FALSE);
CREATE INDEX idx_deployment_objects_deleted_at ON deployment_objects (deleted_at);
CREATE INDEX idx_deployment_objects_stack_id ON deployment_objects (stack_id, sequence_id);
CREATE TABLE agents (
    id UUID PRIMARY KEY, deleted_at TIME, name TEXT NOT NULL, cluster_name TEXT NOT NULL,
    status TEXT NOT NULL, key_hash TEXT NOT NULL UNIQUE);
CREATE TABLE agent_registrations (agent_id UUID NOT NULL, generator_id UUID NOT NULL,
    PRIMARY KEY (agent_id, generator_id));
CREATE TABLE agent_targets (agent_id UUID NOT NULL, stack_id UUID NOT NULL,
    PRIMARY KEY (agent_id, stack_id));
CREATE TABLE agent_labels (agent_id UUID NOT NULL, label TEXT NOT NULL,
    PRIMARY KEY (agent_id, label));
CREATE TABLE agent_annotations (agent_id UUID NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (agent_id, key));
CREATE TABLE stack_labels (stack_id UUID NOT NULL, label TEXT NOT NULL,
    PRIMARY KEY (label, stack_id));
CREATE TABLE agent_events (
    id UUID PRIMARY KEY, deleted_at TIME, agent_id UUID NOT NULL,
    deployment_object_id UUID NOT NULL, status TEXT NOT NULL);
CREATE INDEX idx_agent_events ON agent_events (agent_id, deployment_object_id);
";

const POSTGRES_TRIGGERS: &str = "
CREATE FUNCTION handle_stack_soft_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.deleted_at IS NOT NULL AND OLD.deleted_at IS NULL THEN
        UPDATE deployment_objects SET deleted_at = NEW.deleted_at
            WHERE stack_id = NEW.id AND deleted_at IS NULL;
        INSERT INTO deployment_objects (stack_id, yaml_content, is_deletion_marker)
            VALUES (NEW.id, '', TRUE);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER trigger_handle_stack_soft_delete AFTER UPDATE OF deleted_at ON stacks
    FOR EACH ROW EXECUTE FUNCTION handle_stack_soft_delete();
CREATE FUNCTION cascade_soft_delete_generators() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.deleted_at IS NOT NULL AND OLD.deleted_at IS NULL THEN
        UPDATE stacks SET deleted_at = NEW.deleted_at
            WHERE generator_id = NEW.id AND deleted_at IS NULL;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER cascade_soft_delete_generators AFTER UPDATE ON generators
    FOR EACH ROW EXECUTE FUNCTION cascade_soft_delete_generators();
";

const SQLITE_TRIGGERS: &str = "
CREATE TRIGGER trigger_handle_stack_soft_delete AFTER UPDATE OF deleted_at ON stacks
    WHEN NEW.deleted_at IS NOT NULL AND OLD.deleted_at IS NULL BEGIN
    UPDATE deployment_objects SET deleted_at = NEW.deleted_at
        WHERE stack_id = NEW.id AND deleted_at IS NULL;
    INSERT INTO deployment_objects (stack_id, yaml_content, is_deletion_marker)
        VALUES (NEW.id, '', TRUE);
END;
CREATE TRIGGER cascade_soft_delete_generators AFTER UPDATE ON generators
    WHEN NEW.deleted_at IS NOT NULL AND OLD.deleted_at IS NULL BEGIN
    UPDATE stacks SET deleted_at = NEW.deleted_at
        WHERE generator_id = NEW.id AND deleted_at IS NULL;
END;
";

const GENERATOR: Uuid = Uuid::from_u128(0x0000_0000_0000_7000_80e1_0000_0000_0001);
const AGENT: Uuid = Uuid::from_u128(0x0000_0000_0000_7000_80e2_0000_0000_0001);
const KEY_HASH: &str = "5f3c9a";

/// A database with the document's scheme.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) pool: Pool,
    _database: Database,
}

impl Document {
    /// Makes the scheme and the same generator as [`super::population::submit`] does, and an
    /// agent that has reported on everything.
    pub(crate) async fn new(database: Database) -> anyhow::Result<Self> {
        let pool = database.pool().await?;
        let kind = match pool {
            Pool::Postgres(_) => Kind::Postgres,
            Pool::Sqlite(_) => Kind::Sqlite,
        };
        pool.run(spelled(kind)).await?;
        let (stacks, objects) = (numbers(STACKS), numbers(STACKS * OBJECTS));
        let (generator, agent) = (literal(&pool, GENERATOR), literal(&pool, AGENT));
        let stack = id(&pool, STACK, "n");
        let owner = id(&pool, STACK, &format!("(n - 1) / {OBJECTS} + 1"));
        let (object, tag) = (id(&pool, OBJECT, "n"), id(&pool, TAG, "n"));
        let newest = id(&pool, OBJECT, &format!("n * {OBJECTS}"));
        let (content, checksum) = (content(), checksum(&pool));
        for statement in [
            format!("INSERT INTO generators (id, name) VALUES ({generator}, 'bench')"),
            format!(
                "INSERT INTO stacks (id, name, generator_id) {stacks} \
                 SELECT {stack}, 'stack-' || n, {generator} FROM numbers"
            ),
            format!(
                "INSERT INTO deployment_objects (id, stack_id, yaml_content, yaml_checksum) \
                 {objects} SELECT {object}, {owner}, {content}, {checksum} FROM numbers ORDER BY n"
            ),
            format!(
                "INSERT INTO agents (id, name, cluster_name, status, key_hash) \
                 VALUES ({agent}, 'bench', 'bench', 'ACTIVE', '{KEY_HASH}')"
            ),
            format!("INSERT INTO agent_registrations VALUES ({agent}, {generator})"),
            format!("INSERT INTO agent_labels VALUES ({agent}, '{LABEL}')"),
            format!("INSERT INTO stack_labels {stacks} SELECT {stack}, '{LABEL}' FROM numbers"),
            format!(
                "INSERT INTO agent_events (id, agent_id, deployment_object_id, status) {stacks} \
                 SELECT {tag}, {agent}, {newest}, 'SUCCESS' FROM numbers"
            ),
        ] {
            pool.run(statement).await?;
        }
        crate::population::analyse(&pool).await?;
        Ok(Self { pool, _database: database })
    }

    /// Marks the generator; the triggers do the rest. Returns when it is committed.
    pub(crate) async fn delete(&self) -> anyhow::Result<Duration> {
        let statement = match self.pool {
            Pool::Postgres(_) => "UPDATE generators SET deleted_at = now() WHERE id = $1",
            Pool::Sqlite(_) => {
                "UPDATE generators SET deleted_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER) \
                 WHERE id = $1"
            }
        };
        let took = self.in_one_commit(&[statement]).await?;
        let live = "SELECT count(*) FROM deployment_objects WHERE deleted_at IS NULL";
        let live = self.pool.count(live).await?;
        ensure!(live == i64::from(STACKS), "{live} markers of the document's scheme");
        Ok(took)
    }

    /// The generator, and the document's two statements, each over all stacks at once: one by
    /// one, as the document has them, they would take longer.
    pub(crate) async fn recover(&self) -> anyhow::Result<Duration> {
        let took = self
            .in_one_commit(&[
                "UPDATE generators SET deleted_at = NULL WHERE id = $1",
                "UPDATE stacks SET deleted_at = NULL WHERE generator_id = $1",
                "UPDATE deployment_objects SET deleted_at = NULL \
                 WHERE stack_id IN (SELECT id FROM stacks WHERE generator_id = $1)",
            ])
            .await?;
        let deleted = "SELECT count(*) FROM deployment_objects WHERE deleted_at IS NOT NULL";
        ensure!(self.pool.count(deleted).await? == 0, "the document's recovery left objects");
        Ok(took)
    }

    /// So that each round begins with the same rows: the document has no way to do it.
    pub(crate) async fn drop_markers(&self) -> anyhow::Result<()> {
        let statement = "DELETE FROM deployment_objects WHERE is_deletion_marker";
        self.pool.run(statement.to_owned()).await?;
        crate::population::analyse(&self.pool).await
    }

    async fn in_one_commit(&self, statements: &[&'static str]) -> anyhow::Result<Duration> {
        macro_rules! run {
            ($pool:expr) => {{
                let mut connection = $pool.acquire().await?;
                let begun = Instant::now();
                sqlx::query("BEGIN").execute(&mut *connection).await?;
                for statement in statements {
                    sqlx::query(*statement).bind(GENERATOR).execute(&mut *connection).await?;
                }
                sqlx::query("COMMIT").execute(&mut *connection).await?;
                begun.elapsed()
            }};
        }
        Ok(match &self.pool {
            Pool::Postgres(pool) => run!(pool),
            Pool::Sqlite(pool) => run!(pool),
        })
    }

    /// One idle poll in the peer's way, by prepared statements on one connection: key, agent,
    /// what it is connected with, and then for each stack its newest object and whether the
    /// agent reported on it. Answers how many statements that was.
    pub(crate) async fn poll(&self) -> anyhow::Result<u32> {
        macro_rules! poll {
            ($pool:expr) => {{
                let mut connection = $pool.acquire().await?;
                macro_rules! all {
                    ($statement:expr, $value:expr) => {
                        sqlx::query($statement).bind($value).fetch_all(&mut *connection).await?
                    };
                }
                let mut statements = 8;
                // A key may be that of an admin, a generator or an agent.
                let _ = all!("SELECT id FROM generators WHERE name = $1", KEY_HASH);
                let agent: Uuid =
                    all!("SELECT id FROM agents WHERE key_hash = $1", KEY_HASH)[0].try_get(0)?;
                let _ = all!("SELECT * FROM agents WHERE id = $1 AND deleted_at IS NULL", agent);
                let _ =
                    all!("SELECT generator_id FROM agent_registrations WHERE agent_id = $1", agent);
                let targeted = all!(
                    "SELECT s.* FROM agent_targets t JOIN stacks s ON s.id = t.stack_id \
                     WHERE t.agent_id = $1 AND s.deleted_at IS NULL",
                    agent
                );
                let labels = all!("SELECT label FROM agent_labels WHERE agent_id = $1", agent);
                let _ = all!("SELECT key, value FROM agent_annotations WHERE agent_id = $1", agent);
                let label: String = labels[0].try_get(0)?;
                let labelled = all!(
                    "SELECT s.* FROM stack_labels l JOIN stacks s ON s.id = l.stack_id \
                     JOIN agent_registrations r ON r.generator_id = s.generator_id \
                     WHERE l.label = $1 AND s.deleted_at IS NULL",
                    label
                );
                for stack in targeted.iter().chain(&labelled) {
                    let stack: Uuid = stack.try_get("id")?;
                    let newest = all!(
                        "SELECT * FROM deployment_objects WHERE stack_id = $1 \
                         AND deleted_at IS NULL ORDER BY sequence_id DESC LIMIT 1",
                        stack
                    );
                    let object: Uuid = newest[0].try_get("id")?;
                    let reported = sqlx::query(
                        "SELECT * FROM agent_events WHERE agent_id = $1 \
                         AND deployment_object_id = $2 AND deleted_at IS NULL",
                    );
                    let reported = reported.bind(agent).bind(object);
                    let reported = reported.fetch_all(&mut *connection).await?;
                    ensure!(!reported.is_empty(), "nothing is left to deploy");
                    statements += 2;
                }
                statements
            }};
        }
        let statements = match &self.pool {
            Pool::Postgres(pool) => poll!(pool),
            Pool::Sqlite(pool) => poll!(pool),
        };
        ensure!(statements == 2 * STACKS + 8, "{statements} statements");
        Ok(statements)
    }
}

/// The scheme in the words of the database. Times in SQLite are integers, as ours are.
fn spelled(kind: Kind) -> String {
    let words = match kind {
        Kind::Postgres => [
            ("UUID", "uuid"),
            ("TIME", "timestamptz"),
            ("NOW", "now()"),
            ("RANDOM", "gen_random_uuid()"),
            ("SERIAL", "sequence_id bigserial NOT NULL"),
        ],
        Kind::Sqlite => [
            ("UUID", "BLOB"),
            ("TIME", "INTEGER"),
            ("NOW", "(CAST(unixepoch('subsec') * 1000000 AS INTEGER))"),
            ("RANDOM", "(randomblob(16))"),
            ("SERIAL", "sequence_id INTEGER PRIMARY KEY AUTOINCREMENT"),
        ],
    };
    let spelled = words.iter().fold(SCHEMA.to_owned(), |text, (word, own)| text.replace(word, own));
    let triggers = match kind {
        Kind::Postgres => POSTGRES_TRIGGERS,
        Kind::Sqlite => SQLITE_TRIGGERS,
    };
    spelled + triggers
}
