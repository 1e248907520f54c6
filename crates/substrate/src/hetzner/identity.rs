//! Which project of the provider this is. The API names no project, so this installation puts
//! an object into it once: an empty placement group, which costs nothing, with a random uid in
//! its labels. That uid is the identity, and the same object carries the
//! [high-water mark](super::high_water_mark).
//!
//! *Guarantees:* a token that leads to another project finds no such object, or one with
//! another uid. An object of another installation is a conflict: a project belongs to one
//! installation. Of two objects, made by replicas that started together, the one with the
//! lowest id counts, and whoever made the other one removes it.
//!
//! The uid and not the id of the object is the identity, so that somebody who deleted it by
//! mistake can put it back; until then nothing counts as gone.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use slipway_app::ports::substrate::Error as Problem;
use slipway_core::nodes::token::SecretHash;
use slipway_render::composite::LABEL_INSTALLATION;

use super::budget::Purpose;
use super::client::{Client, Filter, ProjectAccess, Session};
use super::error::failed;
use super::shapes::{Labels, NewPlacementGroup, PlacementGroup};

pub(super) const NAME: &str = "slipway-identity";
const UID: &str = "slipway.dev/project-uid";

/// The object that stands for the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) id: u64,
    pub(super) uid: String,
    pub(super) labels: Labels,
}

/// The object of this installation, if it is there.
pub(super) async fn find(session: &Session, installation: &str) -> Result<Option<Marker>, Problem> {
    let filter = Filter { name: Some(NAME), ..Filter::default() };
    let groups = session.placement_groups(filter).await.map_err(failed)?;
    let Some(group) = groups.into_iter().min_by_key(|group| group.id) else { return Ok(None) };
    marker(group, installation).map(Some)
}

fn marker(group: PlacementGroup, installation: &str) -> Result<Marker, Problem> {
    let PlacementGroup { id, labels, .. } = group;
    match labels.get(LABEL_INSTALLATION) {
        Some(found) if found == installation => {}
        found => {
            let found = found.map_or("(none)", String::as_str);
            return Err(Problem::Conflict(format!(
                "the project at the provider belongs to the installation {found} and not to {installation}, by its placement group {NAME}; give each installation a project of its own"
            )));
        }
    }
    let uid = labels.get(UID).filter(|uid| !uid.is_empty()).cloned();
    let uid = uid.ok_or_else(|| {
        Problem::Failed(format!(
            "the placement group {NAME} has no label {UID}, so the project cannot be told from others; put the label back"
        ))
    })?;
    Ok(Marker { id, uid, labels })
}

/// What a new object is made from.
pub(super) fn fresh(installation: &str, uid: &str) -> NewPlacementGroup {
    let labels = [(LABEL_INSTALLATION, installation), (UID, uid)];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    NewPlacementGroup { name: NAME.to_owned(), kind: "spread", labels: labels.into() }
}

/// The identity of the project behind an access, whosever it is; for a check from outside of a
/// control plane. `None` if it has none.
pub async fn project_uid(access: ProjectAccess) -> Result<Option<String>, Problem> {
    let session = Client::new(access).map_err(failed)?.session(Purpose::Urgent).await;
    let session = session.map_err(failed)?;
    let filter = Filter { name: Some(NAME), ..Filter::default() };
    let groups = session.placement_groups(filter).await.map_err(failed)?;
    let first = groups.into_iter().min_by_key(|group| group.id);
    Ok(first.and_then(|group| group.labels.get(UID).cloned()))
}

/// Why nothing is done in a project that lacks the registered object.
pub(super) fn lost(installation: &str, uid: &str) -> Problem {
    Problem::Failed(format!(
        "the project at the provider has no placement group {NAME}: the token leads to another project, or somebody deleted it. If it is the right project, put it back: hcloud placement-group create --type spread --name {NAME} --label {LABEL_INSTALLATION}={installation} --label {UID}={uid}"
    ))
}

pub(super) fn another(found: &str, registered: &str) -> Problem {
    Problem::Failed(format!(
        "this is another project at the provider: it has the identity {found}, and {registered} was registered"
    ))
}

/// The identity that the project behind a token showed last.
#[derive(Debug, Default)]
pub(super) struct Verified(Mutex<Option<(Instant, SecretHash, String)>>);

impl Verified {
    pub(super) fn note(&self, session: &Session, uid: &str) {
        *self.lock() = Some((Instant::now(), session.token_hash(), uid.to_owned()));
    }

    /// By the same token, and not longer ago than this.
    pub(super) fn within(&self, session: &Session, age: Duration) -> Option<String> {
        let known = self.lock();
        let (at, token, uid) = known.as_ref()?;
        (at.elapsed() < age && *token == session.token_hash()).then(|| uid.clone())
    }

    pub(super) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Instant, SecretHash, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
