//! A generator: a program that submits stacks, and owns them.

use std::time::Duration;

use serde_json::json;

use crate::access::audit::{About, Actor};
use crate::commit::Commit;
use crate::deletion::request::{Deletable, Leaving};
use crate::deletion::settings::RETENTION_MAX;
use crate::error::{ErrorKind, Refusal};
use crate::fleet::event::{Announced, Happened};
use crate::fleet::{FleetName, FleetWrite};
use crate::ids::{DeletionId, GeneratorId, ProjectId, Revision};
use crate::kind::{audited, existing, free, kind, unknown};
use crate::precondition::Expected;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generator {
    pub id: GeneratorId,
    pub project_id: ProjectId,
    /// Unique in its project among the not deleted.
    pub name: FleetName,
    pub description: Option<String>,
    /// Whether its objects may have Secrets with values.
    pub accepts_secrets: bool,
    /// How long what was deleted of it is kept; `None` leaves it to the settings of deletions.
    pub retention: Option<Duration>,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Generator, GeneratorId, GeneratorNotFound);

/// A generator, its row locked.
#[derive(Debug, Clone)]
pub struct GeneratorSnapshot {
    pub now: Timestamp,
    /// The project of a new one, if it is live; locked against deletion.
    pub project: Option<ProjectId>,
    /// The addressed generator, or the one that has the requested name.
    pub generator: Option<Generator>,
}

#[derive(Debug, Clone)]
pub struct NewGenerator {
    pub id: GeneratorId,
    pub name: FleetName,
    pub description: Option<String>,
    pub accepts_secrets: bool,
    pub retention: Option<Duration>,
}

/// The fields to change; `None` leaves one unchanged.
#[derive(Debug, Clone, Default)]
pub struct GeneratorChange {
    pub name: Option<FleetName>,
    pub description: Option<Option<String>>,
    pub accepts_secrets: Option<bool>,
    pub retention: Option<Option<Duration>>,
}

pub fn create(
    snapshot: &GeneratorSnapshot,
    new: &NewGenerator,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let Some(project_id) = snapshot.project else {
        return Err(unknown(ErrorKind::ProjectNotFound, "project").at("project"));
    };
    free(&snapshot.generator, "name", new.name.as_str())?;
    check(new.retention)?;
    let generator = Generator {
        id: new.id,
        project_id,
        name: new.name.clone(),
        description: new.description.clone(),
        accepts_secrets: new.accepts_secrets,
        retention: new.retention,
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "name": generator.name, "accepts_secrets": generator.accepts_secrets });
    let (about, event) = (about(&generator), announced(&generator, snapshot.now));
    let write = FleetWrite::GeneratorInsert(generator);
    let mut commit = audited(write, "generator.create", about, actor, snapshot.now, details);
    commit.events.extend(event);
    Ok(commit)
}

/// A new name must be free, as the store checks with the unique index.
pub fn update(
    snapshot: &GeneratorSnapshot,
    change: &GeneratorChange,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.generator, expected)?;
    let after = Generator {
        name: change.name.clone().unwrap_or_else(|| before.name.clone()),
        description: change.description.clone().unwrap_or_else(|| before.description.clone()),
        accepts_secrets: change.accepts_secrets.unwrap_or(before.accepts_secrets),
        retention: change.retention.unwrap_or(before.retention),
        ..before.clone()
    };
    check(after.retention)?;
    if after == *before {
        return Ok(Commit::default());
    }
    let shown = |generator: &Generator| {
        json!({
            "name": generator.name, "description": generator.description,
            "accepts_secrets": generator.accepts_secrets,
            "retention_seconds": generator.retention.map(|kept| kept.as_secs()),
        })
    };
    let details = json!({ "before": shown(before), "after": shown(&after) });
    let write = FleetWrite::GeneratorUpdate(after);
    let about = about(before).at(before.revision.next());
    Ok(audited(write, "generator.update", about, actor, snapshot.now, details))
}

fn check(retention: Option<Duration>) -> Result<(), Refusal> {
    if retention.is_some_and(|kept| kept > RETENTION_MAX) {
        return Err(Refusal::invalid("retention", "must be at most 3650d, which is ten years"));
    }
    Ok(())
}

fn about(generator: &Generator) -> About {
    About::new(generator.id).of(generator.project_id)
}

fn announced(generator: &Generator, at: Timestamp) -> Option<crate::event::Event> {
    let Generator { id, project_id, revision, .. } = *generator;
    let name = generator.name.as_str();
    Announced { subject: id.into(), name, project_id, revision, at }
        .happened(Happened::Created, None)
}

/// Its stacks and templates go with it, see [`crate::fleet::members`].
impl Deletable for Generator {
    type Snapshot = GeneratorSnapshot;
    const DELETE: &'static str = "generator.delete";
    const KEEPS: bool = true;

    fn found(snapshot: &GeneratorSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.generator, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn project(&self) -> Option<ProjectId> {
        Some(self.project_id)
    }

    fn leaving(&self, _snapshot: &GeneratorSnapshot, leaving: &Leaving<'_>) -> Commit {
        let Leaving { deletion_id, now, .. } = *leaving;
        let own = Announced {
            subject: self.id.into(),
            name: self.name.as_str(),
            project_id: self.project_id,
            revision: self.revision.next(),
            at: now,
        };
        let events = own.happened(Happened::Deleted, Some(deletion_id)).into_iter().collect();
        Commit { events, ..Commit::default() }
    }

    fn free(&self, _snapshot: &GeneratorSnapshot, _cascade: bool) -> Result<(), Refusal> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::fleet::mk_generator;
    use crate::fixtures::{at, mk_actor};

    fn snapshot() -> GeneratorSnapshot {
        GeneratorSnapshot { now: at(1_000), project: None, generator: Some(mk_generator()) }
    }

    #[test]
    fn a_generator_needs_a_live_project_and_a_free_name() {
        let new = NewGenerator {
            id: mk_generator().id,
            name: mk_generator().name,
            description: None,
            accepts_secrets: false,
            retention: None,
        };
        let project = Some(mk_generator().project_id);
        let taken = GeneratorSnapshot { project, ..snapshot() };
        assert_eq!(create(&taken, &new, &mk_actor()).unwrap_err().kind, ErrorKind::NameTaken);
        let free = GeneratorSnapshot { generator: None, ..taken };
        let commit = create(&free, &new, &mk_actor()).unwrap();
        assert_eq!((commit.writes.len(), commit.events.len(), commit.audit.len()), (1, 1, 1));
        let nowhere = GeneratorSnapshot { project: None, ..free };
        let refusal = create(&nowhere, &new, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::ProjectNotFound);
    }

    #[test]
    fn an_update_that_changes_nothing_writes_nothing() {
        let there = snapshot();
        let same = GeneratorChange { name: Some(mk_generator().name), ..Default::default() };
        assert!(update(&there, &same, Expected::Any, &mk_actor()).unwrap().is_empty());
        let other = GeneratorChange { accepts_secrets: Some(true), ..Default::default() };
        let commit = update(&there, &other, Expected::Any, &mk_actor()).unwrap();
        assert_eq!(commit.audit[0].details["after"]["accepts_secrets"], true);
    }
}
