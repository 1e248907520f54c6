//! A tenant: one database for one customer, in a project.

use serde_json::json;

use crate::access::audit::{About, Actor};
use crate::catalog::Name;
use crate::commit::{Commit, Write};
use crate::deletion::request::{Contents, Deletable, Leaving};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{DeletionId, ProjectId, Revision, TenantId, TenantJobId, TenantProfileId};
use crate::kind::{audited, kind, unknown};
use crate::tenants::TenantsWrite;
use crate::tenants::event::{TENANT_CREATED, TENANT_DELETED, announce};
use crate::tenants::job::JobState;
use crate::tenants::task::Repair;
use crate::tenants::waiting::LostWork;
use crate::tenants::write::NewJob;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    pub id: TenantId,
    pub project_id: ProjectId,
    pub profile_id: TenantProfileId,
    /// Unique in its project among the not deleted.
    pub name: Name,
    /// The name that its objects on the target are derived from. Unique among all tenants of
    /// the profile that are not purged: what was deleted is kept there.
    pub target_name: String,
    /// The state of its last job.
    pub state: JobState,
    pub job_id: TenantJobId,
    /// Counts the pieces of work on it: jobs and tasks. The target refuses lower ones.
    pub work: i64,
    /// The last migration that is applied, if anybody knows.
    pub version: Option<String>,
    /// Whether something of it is, or may be, on the target.
    pub present: bool,
    /// Nobody can log in: it is decommissioned.
    pub closed: bool,
    /// How many things its last job could not remove.
    pub leaks: i32,
    /// It is being purged, so that its objects go.
    pub purging: bool,
    /// A roll-out wants its migrations applied.
    pub migrating: bool,
    /// What a person found out about a migration, until its ledger has it.
    pub repair: Option<Repair>,
    /// How often its task failed in a row, and the last reason.
    pub failures: i32,
    pub last_error: Option<String>,
    /// Why its task waits for a person.
    pub waiting_reason: Option<String>,
    /// Work that the target may have, and a restored database does not know.
    pub lost: Option<LostWork>,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Tenant, TenantId, TenantNotFound);

/// A tenant, its row locked.
#[derive(Debug, Clone)]
pub struct TenantSnapshot {
    pub now: Timestamp,
    /// Of a new one: its project, if it is live and stays, and its profile, both locked.
    pub project: Option<ProjectId>,
    pub profile: Option<TenantProfileId>,
    /// The addressed tenant, or the one that has the requested name.
    pub tenant: Option<Tenant>,
    /// Why its job is paused, for a decision that asks for it.
    pub paused: Option<String>,
    /// Whether a tenant of the profile has the requested name on the target.
    pub is_taken: bool,
}

#[derive(Debug, Clone)]
pub struct NewTenant {
    pub id: TenantId,
    pub job_id: TenantJobId,
    pub name: Name,
}

/// Makes the tenant and its first job, which is due at once.
pub fn provision(
    snapshot: &TenantSnapshot,
    new: &NewTenant,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let Some(project_id) = snapshot.project else {
        // The path names it.
        return Err(unknown(ErrorKind::ProjectNotFound, "project"));
    };
    if let Some(tenant) = &snapshot.tenant {
        return Err(exists(tenant));
    }
    let Some(profile_id) = snapshot.profile else {
        let refusal = unknown(ErrorKind::TenantProfileNotFound, "tenant profile");
        return Err(refusal.at("profile"));
    };
    let tenant = Tenant {
        id: new.id,
        project_id,
        profile_id,
        name: new.name.clone(),
        target_name: target_name(new, snapshot.is_taken),
        state: JobState::Pending,
        job_id: new.job_id,
        work: 1,
        version: None,
        present: false,
        closed: false,
        leaks: 0,
        purging: false,
        migrating: false,
        repair: None,
        failures: 0,
        last_error: None,
        waiting_reason: None,
        lost: None,
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({
        "name": tenant.name, "profile_id": profile_id, "job_id": new.job_id,
    });
    let event = announce(TENANT_CREATED, &tenant, Revision::FIRST, snapshot.now, None);
    let job = TenantsWrite::JobInsert(job_of(&tenant, None));
    let about = About::new(tenant.id).of(project_id);
    let write = TenantsWrite::TenantInsert(tenant);
    let mut commit = audited(write, "tenant.provision", about, actor, snapshot.now, details);
    commit.writes.push(job.into());
    commit.events.push(event);
    Ok(commit)
}

/// The next job of the tenant as it is.
pub(crate) const fn job_of(tenant: &Tenant, retry_of: Option<TenantJobId>) -> NewJob {
    NewJob {
        id: tenant.job_id,
        tenant_id: tenant.id,
        project_id: tenant.project_id,
        profile_id: tenant.profile_id,
        work: tenant.work,
        retry_of,
    }
}

/// Its name, unless somebody has it there: another project's tenant, or one that was deleted
/// and is kept. Then with an end of its id, which nobody else has.
fn target_name(new: &NewTenant, is_taken: bool) -> String {
    if !is_taken {
        return new.name.to_string();
    }
    let id = new.id.as_uuid().simple().to_string();
    format!("{}-{}", new.name, &id[id.len() - 8..])
}

/// The live tenant has the name.
fn exists(tenant: &Tenant) -> Refusal {
    let Tenant { id, name, job_id, state, .. } = tenant;
    let (kind, message) = match state {
        _ if tenant.deletion_id.is_some() => (
            ErrorKind::Leaving,
            format!("tenant `{name}` is about to be decommissioned; cancel that first, or wait"),
        ),
        JobState::Ready => (
            ErrorKind::TenantReady,
            format!("tenant `{name}` is ready since job {job_id}; decommission it first"),
        ),
        JobState::Failed => (
            ErrorKind::TenantFailed,
            format!(
                "job {job_id} of tenant `{name}` failed; `slipway tenant explain {name}` says why, `slipway tenant retry {name}` tries again"
            ),
        ),
        _ => (
            ErrorKind::TenantBusy,
            format!("tenant `{name}` has the unfinished job {job_id}; wait for it"),
        ),
    };
    Refusal::new(kind, message).at("name").with(json!({ "id": id, "job_id": job_id }))
}

/// Closed when the deletion begins, kept for the retention, destroyed when it is purged.
impl Deletable for Tenant {
    type Snapshot = TenantSnapshot;
    const DELETE: &'static str = "tenant.delete";

    fn found(snapshot: &TenantSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.tenant, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn project(&self) -> Option<ProjectId> {
        Some(self.project_id)
    }

    fn contents(snapshot: &TenantSnapshot) -> Contents {
        let tenant = snapshot.tenant.as_ref();
        Contents { resources: 0, outside: tenant.is_some_and(Tenant::is_open) }
    }

    fn leaving(&self, _snapshot: &TenantSnapshot, leaving: &Leaving<'_>) -> Commit {
        let deletion = Some(leaving.deletion_id);
        let event = announce(TENANT_DELETED, self, self.revision.next(), leaving.now, deletion);
        Commit { events: vec![event], ..Commit::default() }
    }

    fn free(&self, _snapshot: &TenantSnapshot, _cascade: bool) -> Result<(), Refusal> {
        if self.state.is_over() { Ok(()) } else { Err(exists(self)) }
    }
}

impl Tenant {
    /// Whether somebody could log in.
    pub const fn is_open(&self) -> bool {
        self.present && !self.closed
    }

    pub(crate) fn about(&self) -> About {
        About::new(self.id).of(self.project_id)
    }
}

impl From<TenantsWrite> for Write {
    fn from(write: TenantsWrite) -> Self {
        Self::Tenants(Box::new(write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::tenants::mk_tenant;
    use crate::fixtures::{at, mk_actor};

    fn free() -> TenantSnapshot {
        let tenant = mk_tenant(JobState::Ready);
        TenantSnapshot {
            now: at(1_000),
            project: Some(tenant.project_id),
            profile: Some(tenant.profile_id),
            tenant: None,
            paused: None,
            is_taken: false,
        }
    }

    fn new() -> NewTenant {
        let tenant = mk_tenant(JobState::Ready);
        NewTenant { id: tenant.id, job_id: tenant.job_id, name: tenant.name }
    }

    #[test]
    fn a_tenant_comes_with_its_job_its_event_and_its_audit_entry() {
        let commit = provision(&free(), &new(), &mk_actor()).unwrap();
        assert_eq!((commit.writes.len(), commit.events.len(), commit.audit.len()), (2, 1, 1));
        let missing = TenantSnapshot { profile: None, ..free() };
        let refusal = provision(&missing, &new(), &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::TenantProfileNotFound);
        assert_eq!(refusal.field.as_deref(), Some("profile"));
        let missing = TenantSnapshot { project: None, ..free() };
        let refusal = provision(&missing, &new(), &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::ProjectNotFound);
    }

    #[test]
    fn a_live_tenant_answers_by_its_state_and_names_its_job() {
        let expected = [
            (JobState::Pending, ErrorKind::TenantBusy),
            (JobState::Cleanup, ErrorKind::TenantBusy),
            (JobState::Ready, ErrorKind::TenantReady),
            (JobState::Failed, ErrorKind::TenantFailed),
        ];
        for (state, kind) in expected {
            let there = TenantSnapshot { tenant: Some(mk_tenant(state)), ..free() };
            let refusal = provision(&there, &new(), &mk_actor()).unwrap_err();
            assert_eq!(refusal.kind, kind, "{state}");
            let job = json!(mk_tenant(state).job_id);
            assert_eq!(refusal.details.unwrap()["job_id"], job, "{state}");
        }
    }

    #[test]
    fn a_name_that_is_held_on_the_target_gets_an_end_of_its_own() {
        let held = TenantSnapshot { is_taken: true, ..free() };
        let commit = provision(&held, &new(), &mk_actor()).unwrap();
        let Write::Tenants(write) = &commit.writes[0] else { panic!("{commit:?}") };
        let TenantsWrite::TenantInsert(tenant) = &**write else { panic!("{write:?}") };
        assert!(tenant.target_name.starts_with("acme-"), "{}", tenant.target_name);
        assert_eq!(tenant.target_name.len(), "acme-".len() + 8);
    }

    #[test]
    fn an_unfinished_job_keeps_its_tenant() {
        let busy = mk_tenant(JobState::Migrated);
        let there = TenantSnapshot { tenant: Some(busy.clone()), ..free() };
        assert_eq!(busy.free(&there, false).unwrap_err().kind, ErrorKind::TenantBusy);
        for state in [JobState::Ready, JobState::Failed] {
            let tenant = mk_tenant(state);
            let there = TenantSnapshot { tenant: Some(tenant.clone()), ..free() };
            assert!(tenant.free(&there, false).is_ok(), "{state}");
            assert_eq!(Tenant::contents(&there).outside, state == JobState::Ready);
        }
    }
}
