//! Logs the blockers that a tick raised and cleared, each once, after the commit
//! that wrote them.

use slipway_core::blocker::{self, Blocker, BlockerCode};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Commit, Write};

/// How the blockers of an attempt change with a commit.
#[derive(Debug, Default)]
pub(super) struct BlockerChanges {
    raised: Vec<Blocker>,
    cleared: Vec<BlockerCode>,
}

impl BlockerChanges {
    pub(super) fn of(commit: &Commit, snapshot: &ResourceSnapshot) -> Self {
        let subject = snapshot.attempt.id().into();
        let after = commit.writes.iter().find_map(|write| match write {
            Write::BlockersReplace(of, after) if *of == subject => Some(after),
            _ => None,
        });
        let Some(after) = after else { return Self::default() };
        let (raised, cleared) = blocker::difference(&snapshot.blockers, after);
        Self {
            raised: raised.into_iter().cloned().collect(),
            cleared: cleared.into_iter().map(|blocker| blocker.code).collect(),
        }
    }

    /// A mode withholds actions because a person wanted it: that is no warning.
    pub(super) fn log(&self, snapshot: &ResourceSnapshot) {
        let resource = snapshot.resource.handle.as_str();
        for Blocker { code, message, .. } in &self.raised {
            let remedy = code.remedies().first().map_or("", |remedy| remedy.action);
            match code {
                BlockerCode::Frozen | BlockerCode::ObserveOnly => {
                    tracing::info!(resource, %code, message, remedy, "a resource is blocked");
                }
                _ => tracing::warn!(resource, %code, message, remedy, "a resource is blocked"),
            }
        }
        for code in &self.cleared {
            tracing::info!(resource, %code, "a resource is no longer blocked by this");
        }
    }
}
