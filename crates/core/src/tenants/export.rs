//! A copy of a tenant's data that leaves the control plane. Nothing changes; the audit has who took
//! it.

use serde_json::json;
use uuid::Uuid;

use crate::access::audit::{Actor, AuditEntry};
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::kind::existing;
use crate::precondition::Expected;
use crate::tenants::job::JobState;
use crate::tenants::tenant::TenantSnapshot;

/// A tenant that was made has data, until it is destroyed: also while it is closed. `id` is that of
/// the copy.
pub fn export(
    snapshot: &TenantSnapshot,
    id: Uuid,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let tenant = existing(&snapshot.tenant, expected)?;
    if tenant.state != JobState::Ready {
        let message = format!("tenant `{}` is not ready, so there is nothing to copy", tenant.name);
        return Err(Refusal::new(ErrorKind::TenantBusy, message));
    }
    let entry = AuditEntry::new("tenant.export", actor, tenant.about(), snapshot.now);
    let entry = entry.caused_by(id).with(json!({ "closed": tenant.closed }));
    Ok(Commit { audit: vec![entry], ..Commit::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::tenants::mk_tenant;
    use crate::fixtures::{at, mk_actor, uuid};
    use crate::tenants::tenant::Tenant;

    #[test]
    fn only_what_was_made_is_copied_and_each_copy_is_audited() {
        for state in JobState::ALL.iter().copied() {
            for closed in [false, true] {
                let tenant = Tenant { closed, ..mk_tenant(state) };
                let snapshot = TenantSnapshot {
                    now: at(9),
                    project: None,
                    profile: None,
                    tenant: Some(tenant),
                    paused: None,
                    is_taken: false,
                };
                let ask = |n| export(&snapshot, uuid(n), Expected::default(), &mk_actor());
                match ask(1) {
                    Ok(commit) => {
                        assert_eq!(state, JobState::Ready);
                        assert!(commit.writes.is_empty() && commit.events.is_empty());
                        let again = ask(2).expect("a second copy");
                        assert_ne!(commit.audit[0].id, again.audit[0].id);
                    }
                    Err(refusal) => {
                        assert_ne!(state, JobState::Ready);
                        assert_eq!(refusal.kind, ErrorKind::TenantBusy);
                    }
                }
            }
        }
    }
}
