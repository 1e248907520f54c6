//! Tenants: made, made again, listed, decommissioned.

use serde_json::Value;
use slipway_core::access::idempotency::Request;
use slipway_core::catalog::Name;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DeletionId, TenantId, TenantJobId};
use slipway_core::operations::control::Mode;
use slipway_core::precondition::Expected;
use slipway_core::subject::SubjectKind;
use slipway_core::tenants::job::{self, JobState};
use slipway_core::tenants::profile::TenantProfile;
use slipway_core::tenants::tenant::{self, NewTenant, Tenant, TenantSnapshot};

use super::port::{TenantFilter, TenantKey};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reference;
use crate::deletion::request::{self, DeletableKind, DeleteOptions};
use crate::kind::{self, StoredKind, check};
use crate::ports::store::{Page, Stores};
use crate::ports::{KindStore, Listed};
use crate::{Context, Error};

/// Its name is unique within its project only, so its id refers to it.
impl StoredKind for Tenant {
    type Key = TenantKey;
    type Snapshot = TenantSnapshot;
    type Filter = TenantFilter;
    const READ: Operation = Operation::TenantRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.tenants
    }

    fn seen_by(self, caller: &Caller) -> Option<Self> {
        caller.reaches(self.project_id).then_some(self)
    }
}

impl DeletableKind for Tenant {
    const OPERATION: Operation = Operation::TenantDelete;
}

/// Makes a tenant; its job is due at once.
pub async fn provision(
    context: &Context,
    caller: &Caller,
    (project, profile, name): (&str, &str, &str),
    request: Option<Request>,
) -> Result<TenantId, Error> {
    let actor = authorise(caller, Operation::TenantProvision)?;
    check("project", project)?;
    check("profile", profile)?;
    let new = NewTenant {
        id: TenantId::new(context.entropy.uuid()),
        job_id: TenantJobId::new(context.entropy.uuid()),
        name: Name::parse("name", name)?,
    };
    // Longer than the name: it may get an end of its own there.
    let longest = format!("{}-00000000", new.name);
    if let Some(found) = context.stores.kind::<TenantProfile>().fetch(profile, false).await? {
        context.tenants.check_name(&found.settings, &longest)?;
    }
    let key = TenantKey::New {
        project: project.to_owned(),
        profile: profile.to_owned(),
        name: new.name.to_string(),
    };
    let rule = |snapshot: &TenantSnapshot| {
        let project = snapshot.project.filter(|project| caller.reaches(*project));
        tenant::provision(&TenantSnapshot { project, ..snapshot.clone() }, &new, &actor)
    };
    let id = kind::create::<Tenant>(context, request, new.id, &key, rule).await?;
    context.wakes.wake_tenants();
    Ok(id)
}

pub async fn fetch(
    context: &Context,
    caller: &Caller,
    id: TenantId,
    show_deleted: bool,
) -> Result<Tenant, Error> {
    kind::fetch(context, caller, &id.to_string(), show_deleted).await
}

/// Which tenants, as a caller names what they belong to.
#[derive(Debug, Clone, Default)]
pub struct ListTenants<'a> {
    pub project: Option<&'a str>,
    pub profile: Option<&'a str>,
    pub state: Option<&'a str>,
    pub show_deleted: bool,
}

impl ListTenants<'_> {
    pub async fn filter(&self, context: &Context, caller: &Caller) -> Result<TenantFilter, Error> {
        let project = match self.project {
            Some(text) => {
                let found = reference::find(context, caller, SubjectKind::Project, text).await?;
                Some(found.ok_or_else(|| {
                    let message = format!("there is no project `{text}`; check its name or id");
                    Refusal::new(ErrorKind::ProjectNotFound, message).at("project")
                })?)
            }
            None => None,
        };
        let profile = match self.profile {
            Some(text) => Some(kind::known::<TenantProfile>(context, caller, text).await?.id),
            None => None,
        };
        let state = self.state.map(|text| JobState::parse_field("state", text)).transpose()?;
        let project = project.map(slipway_core::ids::ProjectId::new).or(caller.project);
        Ok(TenantFilter { project, profile, state, show_deleted: self.show_deleted })
    }
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    filter: &TenantFilter,
    page: Page<TenantId>,
) -> Result<Listed<Tenant>, Error> {
    kind::list(context, caller, filter, page).await
}

/// A new job for a tenant whose job failed.
pub async fn retry(
    context: &Context,
    caller: &Caller,
    id: TenantId,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::TenantRetry)?;
    fetch(context, caller, id, false).await?;
    let job_id = TenantJobId::new(context.entropy.uuid());
    let mut rule = |snapshot: &_| job::retry(snapshot, job_id, expected, &actor);
    context.stores.kind::<Tenant>().decide(&TenantKey::Existing(id), &mut rule).await?;
    context.wakes.wake_tenants();
    Ok(())
}

/// What a retry of many did.
#[derive(Debug, Clone, Default)]
pub struct RetriedMany {
    pub retried: Vec<Tenant>,
    /// Those that changed meanwhile, and why they were not retried.
    pub refused: Vec<(Tenant, Refusal)>,
    /// There are more; ask again.
    pub has_more: bool,
}

/// Tenants that one request tries again.
pub(super) const MANY: u32 = 500;

/// Retries the failed tenants that fit.
pub async fn retry_many(
    context: &Context,
    caller: &Caller,
    filter: &TenantFilter,
) -> Result<RetriedMany, Error> {
    authorise(caller, Operation::TenantRetry)?;
    if filter.project.is_none() && filter.profile.is_none() {
        let problem = "is required, or `profile`: a retry of many says which";
        return Err(Refusal::invalid("project", problem).into());
    }
    let failed =
        TenantFilter { state: Some(JobState::Failed), show_deleted: false, ..filter.clone() };
    let page = Page { after: None, limit: MANY };
    let found = list(context, caller, &failed, page).await?;
    let mut many = RetriedMany { has_more: found.next.is_some(), ..RetriedMany::default() };
    for tenant in found.items {
        match retry(context, caller, tenant.id, Expected::Any).await {
            Ok(()) => many.retried.push(tenant),
            Err(error) if error.internal.is_none() => many.refused.push((tenant, error.refusal)),
            Err(error) => return Err(error),
        }
    }
    Ok(many)
}

/// Decommissions it: closed when the grace is over, kept for the retention.
pub async fn delete(
    context: &Context,
    caller: &Caller,
    id: TenantId,
    options: DeleteOptions<'_>,
) -> Result<DeletionId, Error> {
    authorise(caller, Operation::TenantDelete)?;
    fetch(context, caller, id, false).await?;
    let deletion =
        request::delete::<Tenant>(context, caller, &TenantKey::Existing(id), options).await?;
    context.wakes.wake_tenants();
    Ok(deletion)
}

/// How its target differs from what its profile says. A deep comparison builds a tenant on the
/// target and removes it again, so it is no mere reading.
pub async fn drift(
    context: &Context,
    caller: &Caller,
    id: TenantId,
    deep: bool,
) -> Result<Value, Error> {
    if deep {
        authorise(caller, Operation::TenantProvision)?;
        let control = context.stores.operations.control_fetch().await?;
        if control.mode() != Mode::Acting {
            let message = "a deep comparison builds a tenant on the target, and nothing may be \
                           changed now; compare without `deep`, or see `slipway status`";
            return Err(Refusal::new(ErrorKind::Unavailable, message).at("deep").into());
        }
    }
    let tenant = fetch(context, caller, id, false).await?;
    if tenant.state != JobState::Ready || tenant.closed {
        let message =
            format!("tenant `{}` is not ready, so there is nothing to compare", tenant.name);
        return Err(Refusal::new(ErrorKind::TenantBusy, message).into());
    }
    let profile = profile_of(context, &tenant).await?;
    context.tenants.drift(&profile, &tenant, deep).await.map_err(|error| {
        Refusal::new(ErrorKind::Unavailable, format!("the target cannot be compared: {error}"))
            .into()
    })
}

/// Its profile, with all settings.
pub(crate) async fn profile_of(context: &Context, tenant: &Tenant) -> Result<TenantProfile, Error> {
    let id = tenant.profile_id.to_string();
    let found = context.stores.kind::<TenantProfile>().fetch(&id, true).await?;
    let missing =
        || Refusal::new(ErrorKind::TenantProfileNotFound, format!("profile {id} is gone"));
    Ok(found.ok_or_else(missing)?)
}
