//! What of Fleet a restore locks and loads.

use slipway_core::deletion::record::Deletion;
use slipway_core::fleet::restore::DeletedThing;
use slipway_core::ids::{DeploymentObjectId, ProjectId, Revision};
use slipway_core::subject::{Subject, SubjectKind};
use sqlx::Row as _;
use uuid::Uuid;

use super::{Connection, Row};
use crate::failure::Failure;

/// The deleted rows of a table that carry the id of the deletion `$1`, locked, each with the
/// live row that has its name.
macro_rules! things {
    ($table:literal, $among:literal, $stack:literal) => {
        sql!(
            "SELECT d.id, d.revision, d.project_id, d.name, (SELECT x.id FROM ",
            $table,
            " x WHERE x.deleted_at IS NULL AND x.project_id = d.project_id AND x.name = d.name ",
            $among,
            " LIMIT 1) AS holder, ",
            $stack,
            " FROM ",
            $table,
            " d WHERE d.deletion_id = $1 AND d.deleted_at IS NOT NULL ORDER BY d.id",
            (for_update_of "d")
        )
    };
}

const GENERATORS: &str = things!("generators", "", "0 AS last_sequence, NULL AS newest");
/// What a stack had before the marker of its deletion, which is its newest object; nothing if
/// that was a marker as well. In the middle of a roll-out, what all had.
const STACKS: &str = things!(
    "stacks",
    "",
    "d.last_sequence, coalesce((SELECT z.id FROM deployment_objects z \
     WHERE z.id = d.settled_object_id AND z.withdrawn_at IS NULL), \
     (SELECT CASE WHEN o.is_deletion_marker = 0 THEN o.id END FROM deployment_objects o \
     WHERE o.stack_id = d.id AND o.agent_id IS NULL AND o.withdrawn_at IS NULL \
     ORDER BY o.sequence_id DESC LIMIT 1 OFFSET 1)) AS newest"
);
const TEMPLATES: &str = things!(
    "fleet_templates",
    "AND x.version = d.version \
     AND coalesce(x.generator_id, x.project_id) = coalesce(d.generator_id, d.project_id)",
    "0 AS last_sequence, NULL AS newest"
);
const AGENTS: &str = things!(
    "fleet_agents",
    "AND x.cluster_name = d.cluster_name",
    "0 AS last_sequence, NULL AS newest"
);

/// What was deleted and what went with it. Nothing for a deletion of another room.
pub(crate) async fn things(
    connection: &mut Connection,
    deletion: &Deletion,
) -> Result<Vec<DeletedThing>, Failure> {
    let tables: &[(SubjectKind, &'static str)] = match deletion.target.kind {
        SubjectKind::Project => &[
            (SubjectKind::Agent, AGENTS),
            (SubjectKind::Generator, GENERATORS),
            (SubjectKind::Stack, STACKS),
            (SubjectKind::Template, TEMPLATES),
        ],
        SubjectKind::Generator => &[
            (SubjectKind::Generator, GENERATORS),
            (SubjectKind::Stack, STACKS),
            (SubjectKind::Template, TEMPLATES),
        ],
        SubjectKind::Stack => &[(SubjectKind::Stack, STACKS)],
        SubjectKind::Template => &[(SubjectKind::Template, TEMPLATES)],
        SubjectKind::Agent => &[(SubjectKind::Agent, AGENTS)],
        _ => &[],
    };
    let mut things = Vec::new();
    for (kind, statement) in tables {
        let query = sqlx::query(*statement).bind(deletion.id.as_uuid());
        for row in &query.fetch_all(&mut *connection).await? {
            things.push(thing(*kind, row)?);
        }
    }
    Ok(things)
}

fn thing(kind: SubjectKind, row: &Row) -> Result<DeletedThing, sqlx::Error> {
    let is_stack = kind == SubjectKind::Stack;
    let newest: Option<Uuid> = if is_stack { row.try_get("newest")? } else { None };
    Ok(DeletedThing {
        subject: Subject::new(kind, row.try_get("id")?),
        name: row.try_get("name")?,
        project_id: ProjectId::new(row.try_get("project_id")?),
        revision: Revision(row.try_get("revision")?),
        holder: row.try_get("holder")?,
        last_sequence: if is_stack { row.try_get("last_sequence")? } else { 0 },
        newest: newest.map(DeploymentObjectId::new),
    })
}

/// What a thing of Fleet belongs to, which is locked before it.
pub(crate) async fn container(
    connection: &mut Connection,
    target: Subject,
) -> Result<Option<Subject>, Failure> {
    let statement = match target.kind {
        SubjectKind::Generator => "SELECT project_id FROM generators WHERE id = $1",
        SubjectKind::Agent => "SELECT project_id FROM fleet_agents WHERE id = $1",
        SubjectKind::Stack => "SELECT project_id, generator_id FROM stacks WHERE id = $1",
        SubjectKind::Template => {
            "SELECT project_id, generator_id FROM fleet_templates WHERE id = $1"
        }
        _ => return Ok(None),
    };
    let row = sqlx::query(statement).bind(target.id).fetch_optional(connection).await?;
    let Some(row) = row else { return Ok(None) };
    let generator: Option<Uuid> = match target.kind {
        SubjectKind::Stack | SubjectKind::Template => row.try_get("generator_id")?,
        _ => None,
    };
    Ok(Some(match generator {
        Some(id) => Subject::new(SubjectKind::Generator, id),
        None => Subject::new(SubjectKind::Project, row.try_get("project_id")?),
    }))
}
