//! Planning deletions: reads what one would take away, under the locks of the request, and
//! stores it.

use std::time::Duration;

use futures::future::join_all;
use slipway_core::access::audit::Actor;
use slipway_core::broker::delete;
use slipway_core::broker::holding::Holder;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint::Blueprint;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::credential::Credential;
use slipway_core::catalog::label::LabelDefinition;
use slipway_core::catalog::project::Project;
use slipway_core::deletion::approval::{self, PlanSnapshot};
use slipway_core::deletion::door::{DoorInput, Doored, Reads};
use slipway_core::deletion::plan::{Circumstances, Composed, Plan};
use slipway_core::deletion::request;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::agent::Agent;
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::stack::Stack;
use slipway_core::fleet::template::Template;
use slipway_core::ids::{
    AgentId, CloudCredentialId, GeneratorId, PlanId, ResourceId, StackId, TemplateId, TenantId,
    WorkspaceId,
};
use slipway_core::kind::Kind;
use slipway_core::nearest::not_one_of;
use slipway_core::operations::reference::unknown;
use slipway_core::placement::cluster::Cluster;
use slipway_core::subject::{Subject, SubjectKind};
use slipway_core::tenants::profile::TenantProfile;
use slipway_core::tenants::tenant::Tenant;
use slipway_core::text::Reason;
use slipway_core::topology::workspace::Workspace;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach, reach_resource};
use crate::access::reference;
use crate::broker::port::ResourceFilter;
use crate::catalog::port::{BlueprintKey, CredentialKey};
use crate::deletion::leaks::Finder;
use crate::deletion::request::{DeletableKind, DeleteOptions, braked, subject};
use crate::fleet::port::{AgentKey, GeneratorKey, StackKey, TemplateKey};
use crate::kind::StoredKind;
use crate::ports::store::Page;
use crate::tenants::port::TenantKey;
use crate::topology::port::WorkspaceKey;
use crate::{Context, Error};

/// Composites whose objects are read for a plan; of more it shows what the rows know.
const OBSERVED: u32 = 20;
/// How long a plan waits for them.
const OBSERVED_WITHIN: Duration = Duration::from_secs(3);

pub use slipway_core::deletion::settings::KINDS;

/// The kind of a plan's target, as a caller names it.
pub fn kind(text: &str) -> Result<SubjectKind, Refusal> {
    let named = KINDS.into_iter().find(|kind| kind.as_str() == text);
    named.ok_or_else(|| not_one_of("kind", text, &KINDS.map(SubjectKind::as_str)))
}

/// The subject of this kind that a caller names within its reach.
pub async fn target(
    context: &Context,
    caller: &Caller,
    kind: SubjectKind,
    reference: &str,
) -> Result<Subject, Error> {
    let found = reference::find(context, caller, kind, reference).await?;
    let missing = match kind {
        SubjectKind::Project => Project::MISSING,
        SubjectKind::Cluster => Cluster::MISSING,
        SubjectKind::Blueprint => Blueprint::MISSING,
        SubjectKind::Cloud => Cloud::MISSING,
        SubjectKind::Credential => Credential::MISSING,
        SubjectKind::Label => LabelDefinition::MISSING,
        SubjectKind::Generator => Generator::MISSING,
        SubjectKind::Stack => Stack::MISSING,
        SubjectKind::Template => Template::MISSING,
        SubjectKind::Agent => Agent::MISSING,
        SubjectKind::TenantProfile => TenantProfile::MISSING,
        SubjectKind::Tenant => Tenant::MISSING,
        SubjectKind::Workspace => Workspace::MISSING,
        _ => ErrorKind::ResourceNotFound,
    };
    let unknown = || Refusal::new(missing, unknown(kind, reference).message);
    Ok(Subject::new(kind, found.ok_or_else(unknown)?))
}

/// Plans the deletion of this subject.
pub async fn plan(
    finder: &Finder,
    caller: &Caller,
    target: Subject,
    cascade: bool,
) -> Result<Plan, Error> {
    authorise(caller, Operation::DeletionPlan)?;
    let context = finder.context();
    if target.kind == SubjectKind::Resource {
        reach_resource(context, caller, ResourceId::new(target.id)).await?;
    }
    let composed = composed(finder, target, cascade).await?;
    make(context, caller, target, cascade, composed).await
}

/// The same with what is known of the composites.
pub async fn make(
    context: &Context,
    caller: &Caller,
    target: Subject,
    cascade: bool,
    composed: Composed,
) -> Result<Plan, Error> {
    let id = target.id.to_string();
    let mode = context.stores.operations.control_fetch().await?.mode();
    let circumstances = Circumstances {
        plan_id: PlanId::new(context.entropy.uuid()),
        ask: DeleteOptions { cascade, ..DeleteOptions::default() }.ask(context, caller)?,
        mode,
        deadlines: context.settings.deadlines,
        composed,
    };
    let planner = Planner { context, caller, circumstances };
    match target.kind {
        SubjectKind::Resource => planner.resource(ResourceId::new(target.id)).await,
        SubjectKind::Project => planner.row::<Project>(&id).await,
        SubjectKind::Cloud => planner.row::<Cloud>(&id).await,
        SubjectKind::Credential => {
            let key = CredentialKey::Existing(CloudCredentialId::new(target.id));
            planner.row::<Credential>(&key).await
        }
        SubjectKind::Cluster => planner.row::<Cluster>(&id).await,
        SubjectKind::Label => planner.row::<LabelDefinition>(&id).await,
        SubjectKind::Generator => {
            planner.row::<Generator>(&GeneratorKey::Existing(GeneratorId::new(target.id))).await
        }
        SubjectKind::Stack => {
            planner.row::<Stack>(&StackKey::Existing(StackId::new(target.id))).await
        }
        SubjectKind::Template => {
            planner.row::<Template>(&TemplateKey::Existing(TemplateId::new(target.id))).await
        }
        SubjectKind::Agent => {
            planner.row::<Agent>(&AgentKey::Leaving(AgentId::new(target.id))).await
        }
        SubjectKind::TenantProfile => planner.row::<TenantProfile>(&id).await,
        SubjectKind::Tenant => {
            planner.row::<Tenant>(&TenantKey::Existing(TenantId::new(target.id))).await
        }
        SubjectKind::Workspace => {
            planner.row::<Workspace>(&WorkspaceKey::Existing(WorkspaceId::new(target.id))).await
        }
        SubjectKind::Blueprint => {
            planner.row::<Blueprint>(&BlueprintKey { blueprint: id, version: None }).await
        }
        other => Err(kind(other.as_str()).err().unwrap_or_else(vanished).into()),
    }
}

struct Planner<'a> {
    context: &'a Context,
    caller: &'a Caller,
    circumstances: Circumstances,
}

impl Planner<'_> {
    fn input(&self) -> DoorInput {
        let reads = Reads::Everything { cascade: self.circumstances.ask.cascade };
        let caller = braked(self.context, self.caller);
        let cascade = self.circumstances.ask.cascade;
        DoorInput { reads, caller, cascade, ..self.context.settings.deletion.into() }
    }

    async fn row<K: DeletableKind>(&self, key: &<K as StoredKind>::Key) -> Result<Plan, Error> {
        let actor = authorise(self.caller, K::OPERATION)?;
        let mut made = None;
        let mut rule = |snapshot: &Doored<_>| {
            let door = &snapshot.door;
            let plan = request::plan::<K>(&snapshot.of, door, &self.circumstances, &actor)?;
            Ok(made.insert(plan).clone().stored())
        };
        let store = self.context.stores.kind::<K>();
        store.decide_deletion(key, subject::<K>, self.input(), &mut rule).await?;
        made.ok_or_else(|| vanished().into())
    }

    async fn resource(&self, id: ResourceId) -> Result<Plan, Error> {
        let actor: Actor = authorise(self.caller, Operation::ResourceDelete)?;
        let mut made = None;
        let mut rule = |snapshot: &Doored<ResourceSnapshot>| {
            let plan = delete::plan(&snapshot.of, &snapshot.door, &self.circumstances, &actor)?;
            Ok(made.insert(plan).clone().stored())
        };
        self.context.stores.broker.decide_deletion(id, self.input(), &mut rule).await?;
        made.ok_or_else(|| vanished().into())
    }
}

fn vanished() -> Refusal {
    Refusal::new(ErrorKind::Internal, "the plan vanished; plan again")
}

/// What the composites are composed of, if they are few and their clusters answer soon.
async fn composed(finder: &Finder, target: Subject, cascade: bool) -> Result<Composed, Error> {
    let broker = &finder.context().stores.broker;
    let found = match target.kind {
        SubjectKind::Resource => {
            broker.resource_fetch(ResourceId::new(target.id)).await?.into_iter().collect()
        }
        SubjectKind::Project if cascade => {
            let project = Some(target.id.to_string());
            let filter = ResourceFilter { project, ..ResourceFilter::default() };
            let page = Page { after: None, limit: OBSERVED + 1 };
            let listed = broker.resource_list(&filter, page).await?;
            if listed.len() > OBSERVED as usize {
                let missing = format!("not asked: more than {OBSERVED} resources");
                return Ok(Composed { missing: Some(missing), ..Composed::default() });
            }
            listed.into_iter().filter_map(Result::ok).collect()
        }
        _ => Vec::new(),
    };
    let found: Vec<ResourceSnapshot> = found;
    let of_one = |one: ResourceSnapshot| {
        let second = one.other.clone().map(|second| *second);
        [Some(one), second].into_iter().flatten()
    };
    let snapshots: Vec<ResourceSnapshot> = found.into_iter().flat_map(of_one).collect();
    let asked = snapshots.iter().map(|snapshot| finder.holders_of(snapshot, OBSERVED_WITHIN));
    let answers = join_all(asked).await;
    let mut composed = Composed::default();
    for (snapshot, answer) in snapshots.iter().zip(answers) {
        let name = snapshot.attempt.xr_name().to_owned();
        let problem = match answer {
            Some(Ok(found)) => {
                // The first is the composite itself.
                let objects: Vec<_> = found.iter().skip(1).map(Holder::composed).collect();
                if !objects.is_empty() {
                    composed.objects.insert(name, objects);
                }
                continue;
            }
            Some(Err(problem)) => problem,
            None => "this control plane does not serve its cluster".to_owned(),
        };
        composed.missing.get_or_insert_with(|| format!("{name}: {problem}"));
    }
    Ok(composed)
}

pub async fn fetch(context: &Context, caller: &Caller, id: PlanId) -> Result<Plan, Error> {
    authorise(caller, Operation::DeletionRead)?;
    in_reach(context, caller, id).await?;
    context.stores.deletion.plan_fetch(id).await?.ok_or_else(|| missing(id))
}

/// Approves a plan that somebody else made.
pub async fn approve(
    context: &Context,
    caller: &Caller,
    id: PlanId,
    reason: &str,
) -> Result<Plan, Error> {
    let actor = authorise(caller, Operation::PlanApprove)?;
    in_reach(context, caller, id).await?;
    let reason = Reason::parse(reason).map_err(Refusal::from)?;
    let mut rule = |snapshot: &PlanSnapshot| approval::approve(snapshot, &reason, &actor);
    let approver = caller.key_id.map(|_| &*caller.name);
    context.stores.deletion.plan_decide(id, approver, &mut rule).await?;
    context.stores.deletion.plan_fetch(id).await?.ok_or_else(|| missing(id))
}

/// Refuses a plan out of the caller's reach as if it did not exist.
pub(crate) async fn in_reach(context: &Context, caller: &Caller, id: PlanId) -> Result<(), Error> {
    reach(context, caller, Owned::Plan(id), || missing(id)).await
}

fn missing(id: PlanId) -> Error {
    not_found(ErrorKind::PlanNotFound, "plan", id)
}
