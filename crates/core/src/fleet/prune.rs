//! Removals that an agent refuses to carry out by itself. A stack that is absent from an answer
//! means "remove it" to an agent; above a limit it waits until somebody confirms exactly this
//! removal, by its digest.

use serde_json::json;

use crate::access::audit::Actor;
use crate::catalog::name::line;
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::fleet::FleetWrite;
use crate::fleet::agent::{Agent, about};
use crate::ids::AgentId;
use crate::kind::{audited, existing};
use crate::precondition::Expected;
use crate::time::Timestamp;

/// What an agent would remove, and did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneRefusal {
    /// Over the sorted references of the objects.
    pub digest: String,
    pub objects: i64,
    /// How many objects the agent has.
    pub total: i64,
}

impl PruneRefusal {
    pub fn parse(digest: &str, objects: i64, total: i64) -> Result<Self, Refusal> {
        let digest = line("digest", digest, 1, 128)?;
        if objects < 0 || total < objects {
            let problem = "must be at least 0 and at most `total`";
            return Err(Refusal::invalid("objects", problem));
        }
        Ok(Self { digest, objects, total })
    }
}

/// A refusal as the row of its agent has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPrune {
    pub refusal: PruneRefusal,
    pub refused_at: Timestamp,
    pub confirmed_at: Option<Timestamp>,
}

/// An agent, its row locked, and what it refused last.
#[derive(Debug, Clone)]
pub struct PruneSnapshot {
    pub now: Timestamp,
    pub agent: Option<Agent>,
    pub refused: Option<RefusedPrune>,
}

/// The digest of a removal that somebody agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneConfirmed {
    pub agent_id: AgentId,
    pub digest: String,
    pub at: Timestamp,
}

/// Agrees to the removal that the agent refused last; `digest` if it must be this one.
pub fn confirm(
    snapshot: &PruneSnapshot,
    digest: Option<&str>,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let agent = existing(&snapshot.agent, Expected::Any)?;
    let Some(RefusedPrune { refusal, confirmed_at, .. }) = &snapshot.refused else {
        let message = format!("agent `{}` refused no removal", agent.name);
        return Err(Refusal::new(ErrorKind::NothingToConfirm, message));
    };
    if digest.is_some_and(|digest| digest != refusal.digest) {
        let message = format!(
            "agent `{}` refused another removal since ({} of {} objects); look at it again",
            agent.name, refusal.objects, refusal.total
        );
        return Err(Refusal::new(ErrorKind::NothingToConfirm, message).at("digest"));
    }
    if confirmed_at.is_some() {
        return Ok(Commit::default());
    }
    let details = json!({
        "digest": refusal.digest, "objects": refusal.objects, "total": refusal.total,
    });
    let digest = refusal.digest.clone();
    let confirmed = PruneConfirmed { agent_id: agent.id, digest, at: snapshot.now };
    let write = FleetWrite::PruneConfirm(confirmed);
    Ok(audited(write, "agent.confirm_prune", about(agent), actor, snapshot.now, details))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::fleet::mk_agent;
    use crate::fixtures::{at, mk_actor};

    #[test]
    fn only_what_was_refused_is_confirmed_and_once() {
        let none = PruneSnapshot { now: at(9), agent: Some(mk_agent()), refused: None };
        let kind = |snapshot: &PruneSnapshot, digest| {
            confirm(snapshot, digest, &mk_actor()).map_err(|refusal| refusal.kind)
        };
        assert_eq!(kind(&none, None).unwrap_err(), ErrorKind::NothingToConfirm);
        let refusal = PruneRefusal::parse("abc", 51, 60).unwrap();
        let refused = RefusedPrune { refusal, refused_at: at(1), confirmed_at: None };
        let open = PruneSnapshot { refused: Some(refused.clone()), ..none };
        assert_eq!(kind(&open, Some("other")).unwrap_err(), ErrorKind::NothingToConfirm);
        assert_eq!(kind(&open, Some("abc")).unwrap().writes.len(), 1);
        let confirmed = RefusedPrune { confirmed_at: Some(at(2)), ..refused };
        let done = PruneSnapshot { refused: Some(confirmed), ..open };
        assert_eq!(kind(&done, None).unwrap(), Commit::default());
        assert!(PruneRefusal::parse("abc", 61, 60).is_err());
        assert!(PruneRefusal::parse("", 1, 60).is_err());
    }
}
