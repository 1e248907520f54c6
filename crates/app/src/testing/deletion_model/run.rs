//! Runs the requests of one sequence against a store, as callers and loops do it, and reads
//! what the rows say afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use slipway_core::ErrorKind;
use slipway_core::Phase;
use slipway_core::access::api_key::ApiKey;
use slipway_core::access::api_key_rules::{self, NewKey};
use slipway_core::access::audit::Actor;
use slipway_core::access::role::Role;
use slipway_core::blocker::Deadlines;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::project::Project;
use slipway_core::commit::{Commit, Write};
use slipway_core::deletion::DeletionWrite;
use slipway_core::deletion::brake::Limits;
use slipway_core::deletion::door::Defaults;
use slipway_core::deletion::leak::LeakRecord;
use slipway_core::deletion::plan::Composed;
use slipway_core::deletion::protection::{Lifted, Protection};
use slipway_core::deletion::record::{Deletion, DeletionState};
use slipway_core::deletion::request::DeletionSnapshot;
use slipway_core::deletion::restore::Renames;
use slipway_core::deletion::settings::{SettingScope, Values};
use slipway_core::ids::{
    CloudCredentialId, DeletionId, LeakRecordId, PlanId, ProjectId, ProvisionedResourceId,
    ResourceId,
};
use slipway_core::nodes::token::TokenLifetimes;
use slipway_core::placement::cluster::NamespacePrefix;
use slipway_core::subject::{Subject, SubjectKind};
use slipway_core::time::Timestamp;
use uuid::Uuid;

use super::model::{APPROVE_ABOVE, LIMIT, Model};
use super::request::{Delete, Grace, Key, Kind, Operation, Outcome, Request, Who};
use crate::access::authorise::Caller;
use crate::access::port::KeyTarget;
use crate::broker::declare::{self, Declare};
use crate::broker::delete;
use crate::broker::port::{AttemptFilter, ResourceFilter, ResourceKey};
use crate::context::{Context, Settings, Wakes};
use crate::deletion::port::DeletionFilter;
use crate::deletion::protection::{self, Change};
use crate::deletion::purge::{self, PurgeOptions};
use crate::deletion::request::{self as deletion_request, DeleteOptions};
use crate::deletion::restore::{self, RestoreOptions};
use crate::deletion::run::Runner;
use crate::deletion::{brake, plan, settings};
use crate::permits::Permits;
use crate::ports::meter::Unmetered;
use crate::ports::store::{self, Page};
use crate::ports::templates::NoTemplates;
use crate::ports::{Clock, Entropy};
use crate::testing::world::{BLUEPRINT, World, operator};

const HOUR: Duration = Duration::from_secs(3_600);
const WHY: &str = "the model says so";
/// Passes of the loop until nothing changes, at most.
const PASSES: usize = 20;
const ALL: Page<Uuid> = Page { after: None, limit: 100_000 };

/// What the rows say and what the model says, a line for each thing, deletion, plan and
/// brake.
pub(super) type View = BTreeSet<String>;

/// The ids that one request makes; all requests together make rising ones, whatever runs at once.
#[derive(Debug)]
struct Numbered {
    first: u128,
    count: AtomicU64,
}

impl Numbered {
    fn new(sequence: u32, key: Key) -> Self {
        let number = u128::from(sequence) << 48 | u128::from(key) << 24;
        let first = (0x0190_0000_0001_7000_u128 << 64) | number;
        Self { first, count: AtomicU64::new(1) }
    }
}

impl Entropy for Numbered {
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(self.first + u128::from(self.count.fetch_add(1, Ordering::Relaxed)))
    }

    fn fill(&self, bytes: &mut [u8]) {
        let drawn = self.uuid().into_bytes();
        bytes.iter_mut().zip(drawn.iter().cycle()).for_each(|(byte, drawn)| *byte = *drawn);
    }
}

/// The request whose id this is.
fn request_of(id: Uuid) -> Key {
    Key::try_from(id.as_u128() >> 24 & 0xff_ffff).unwrap_or_default()
}

#[derive(Debug)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Timestamp {
        Timestamp::ZERO
    }
}

/// A sequence under way.
pub(super) struct Run {
    world: Arc<World>,
    context: Context,
    sequence: u32,
    runner: Runner,
    callers: BTreeMap<Who, Caller>,
    credential: CloudCredentialId,
    known: Mutex<Known>,
}

/// What the requests made.
#[derive(Debug, Clone, Default)]
struct Known {
    things: BTreeMap<Key, Subject>,
    deletions: BTreeMap<Key, DeletionId>,
    plans: BTreeMap<Key, PlanId>,
    /// Deletions whose retention is over.
    over: BTreeSet<Key>,
}

impl Run {
    pub(super) async fn new(world: Arc<World>, sequence: u32) -> Self {
        let context = Context {
            stores: world.store.clone(),
            clock: Arc::new(NoClock),
            entropy: Arc::new(Numbered::new(sequence, 0)),
            wakes: Wakes::default(),
            meter: Arc::new(Unmetered),
            templates: Arc::new(NoTemplates),
            tenants: Arc::new(crate::tenants::targets::NoTargets),
            inventories: crate::topology::inventory::Inventories::default(),
            settings: Settings {
                deadlines: Deadlines::default(),
                claimed_within: HOUR,
                token_lifetimes: TokenLifetimes::default(),
                token_environment: "test".to_owned(),
                namespace_prefix: NamespacePrefix::from_stored("p-".to_owned()),
                deletion: Defaults::default(),
                brake: Limits { resources: LIMIT, window: HOUR },
            },
        };
        let mut callers = BTreeMap::new();
        for who in Who::ALL {
            let maker = match who {
                Who::Eve => Actor::new(format!("key:{}", callers_name(&callers, Who::Ada))),
                Who::Ada | Who::Bob => operator(),
            };
            callers.insert(who, world.caller(who, &maker).await);
        }
        let credential = world.create_credential("local", &world.fresh_name("model")).await;
        let runner = Runner::new(context.clone(), Arc::new(Permits::default()));
        let credential = credential.expect("a credential");
        let known = Mutex::default();
        Self { world, context, sequence, runner, callers, credential, known }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().expect("nobody panicked")
    }

    fn thing(&self, key: Key) -> Subject {
        self.known().things[&key]
    }

    fn deletion(&self, key: Key) -> DeletionId {
        self.known().deletions[&key]
    }

    fn named(&self, kind: Kind, name: u8) -> String {
        match kind {
            Kind::Resource => format!("web-{name}"),
            Kind::Project => format!("shop-{}-{name}", self.sequence),
            Kind::Cloud => format!("cloud-{}-{name}", self.sequence),
        }
    }

    /// Runs a request; whoever lost against another writer asks again.
    pub(super) async fn request(&self, request: Request) -> Outcome {
        for _ in 0..PASSES {
            match Box::pin(self.attempt(request)).await {
                Err(ErrorKind::RevisionStale) => {}
                outcome => return outcome.map_err(ErrorKind::code),
            }
        }
        panic!("{request:?} is stale again and again");
    }

    async fn attempt(&self, request: Request) -> Result<Option<Key>, ErrorKind> {
        let Request { key, who, operation } = request;
        let context = &Context {
            entropy: Arc::new(Numbered::new(self.sequence, key)),
            ..self.context.clone()
        };
        let caller = &self.callers[&who];
        match operation {
            Operation::CreateProject { name } => {
                let named = self.named(Kind::Project, name);
                let id = self.world.create_project(&named).await.map_err(of_store)?;
                self.known().things.insert(key, id.into());
            }
            Operation::CreateCloud { name } => {
                let named = self.named(Kind::Cloud, name);
                let id = self.world.create_cloud(&named).await.map_err(of_store)?;
                self.known().things.insert(key, id.into());
            }
            Operation::Declare { project, name, protected } => {
                let declare = Declare {
                    project: Some(self.thing(project).id.to_string()),
                    handle: self.named(Kind::Resource, name),
                    blueprint: BLUEPRINT.to_owned(),
                    protected,
                    ..Declare::default()
                };
                let id = declare::declare(context, caller, declare).await.map_err(kind)?;
                self.known().things.insert(key, id.into());
            }
            Operation::Protect(thing) => self.protect(caller, thing, Change::Set).await?,
            Operation::Unprotect(thing) => self.protect(caller, thing, Change::Remove).await?,
            Operation::Lift(thing) => self.protect(caller, thing, Change::Lift(HOUR)).await?,
            Operation::Plan { target, cascade } => {
                let target = self.thing(target);
                let made = plan::make(context, caller, target, cascade, Composed::default());
                let made = made.await.map_err(kind)?;
                self.known().plans.insert(key, made.id);
            }
            Operation::Approve(of) => {
                let of = self.known().plans[&of];
                plan::approve(context, caller, of, WHY).await.map_err(kind)?;
            }
            Operation::Delete(delete) => return self.delete(context, caller, delete).await,
            Operation::Cancel(of) => {
                let of = self.deletion(of);
                deletion_request::cancel(context, caller, of, Some(WHY)).await.map_err(kind)?;
            }
            Operation::Restore { deletion, redeclare, rename } => {
                self.restore(caller, deletion, redeclare, rename).await?;
            }
            Operation::Purge { deletion, despite } => {
                let options = PurgeOptions {
                    force: true,
                    reason: Some(WHY),
                    despite_protection: despite,
                    now: false,
                };
                let of = self.deletion(deletion);
                purge::purge(context, caller, of, options).await.map_err(kind)?;
            }
            Operation::Release(of) => {
                let of = self.callers[&of].key_id.expect("a key");
                brake::release(context, caller, of, Some(HOUR), WHY).await.map_err(kind)?;
            }
            Operation::Set { project, approve, purge_protected } => {
                let project = Some(ProjectId::new(self.thing(project).id));
                let values = Values {
                    approve_above: approve.then_some(APPROVE_ABOVE),
                    purge_protected: Some(purge_protected),
                    ..Values::default()
                };
                let scope = SettingScope { project, kind: None };
                settings::set(context, caller, scope, values, Some(WHY)).await.map_err(kind)?;
            }
            world => self.happen(world).await,
        }
        Ok(None)
    }

    async fn delete(
        &self,
        context: &Context,
        caller: &Caller,
        delete: Delete,
    ) -> Result<Option<Key>, ErrorKind> {
        let Delete { target, grace, cascade, break_glass, plan } = delete;
        let options = DeleteOptions {
            reason: Some(WHY),
            grace: match grace {
                Grace::Unsaid => None,
                Grace::None => Some(Duration::ZERO),
                Grace::Hour => Some(HOUR),
            },
            cascade,
            break_glass,
            plan: plan.map(|plan| self.known().plans[&plan]),
            ..DeleteOptions::default()
        };
        let Subject { kind: of, id } = self.thing(target);
        let reference = id.to_string();
        let answered = match of {
            SubjectKind::Project => {
                deletion_request::delete::<Project>(context, caller, &reference, options).await
            }
            SubjectKind::Cloud => {
                deletion_request::delete::<Cloud>(context, caller, &reference, options).await
            }
            _ => delete::delete(context, caller, ResourceId::new(id), options).await,
        };
        let answered = answered.map_err(kind)?;
        let key = request_of(answered.as_uuid());
        self.known().deletions.insert(key, answered);
        Ok(Some(key))
    }

    async fn protect(&self, caller: &Caller, of: Key, change: Change) -> Result<(), ErrorKind> {
        let subject = self.thing(of);
        protection::change(&self.context, caller, subject, change, WHY).await.map_err(kind)?;
        Ok(())
    }

    async fn restore(
        &self,
        caller: &Caller,
        deletion: Key,
        redeclare: bool,
        rename: Option<u8>,
    ) -> Result<(), ErrorKind> {
        let id = self.deletion(deletion);
        let found = self.world.deletion(id).await;
        let target = rename.map(|name| self.named(kind_of(found.target), name));
        let renames = Renames { target, ..Renames::default() };
        let options = RestoreOptions { reason: Some(WHY), renames, redeclare, dry_run: false };
        restore::restore(&self.context, caller, id, options).await.map_err(kind)?;
        Ok(())
    }

    /// What nobody asks for.
    async fn happen(&self, operation: Operation) {
        match operation {
            Operation::Pass => self.pass().await,
            Operation::TakeDown(thing) => {
                let attempts = self.attempts(thing).await;
                let last = attempts.last().expect("an attempt");
                self.world.drive(*last, Phase::Deleted).await;
            }
            Operation::Prove(thing) => {
                for attempt in self.attempts(thing).await {
                    let of = self.world.snapshot(attempt).await.attempt;
                    if of.phase() == Phase::Deleted && of.absence_proven_at().is_none() {
                        let claimed = self.world.claim_now(attempt).await;
                        let absent = CompositeReport::Absent;
                        self.world.tick_proving(claimed, &absent).await.expect("a tick");
                    }
                }
            }
            Operation::Leak(thing) => {
                let attempts = self.attempts(thing).await;
                let leak = LeakRecord {
                    id: LeakRecordId::new(self.world.uuid()),
                    kind: "composite",
                    subject: (*attempts.last().expect("an attempt")).into(),
                    found_at: self.now().await,
                    last_known: None,
                    evidence: json!({}),
                };
                self.world.store.deletion.leak_record(&leak).await.expect("a leak");
            }
            Operation::Resolve(thing) => {
                let attempts = self.attempts(thing).await;
                let resolve = |attempt: &ProvisionedResourceId| {
                    Write::Deletion(DeletionWrite::LeaksResolve((*attempt).into()))
                };
                let writes: Vec<_> = attempts.iter().map(resolve).collect();
                let mut rule = |_: &ResourceSnapshot| {
                    Ok(Commit { writes: writes.clone(), ..Commit::default() })
                };
                let key = ResourceKey::Resource(ResourceId::new(self.thing(thing).id));
                self.world.store.broker.decide(key, &mut rule).await.expect("it is resolved");
            }
            Operation::LiftEnds(thing) => self.end_lift(thing).await,
            Operation::GraceEnds(deletion) => {
                self.change(deletion, |found, now| Deletion { scheduled_for: Some(now), ..found })
                    .await;
            }
            Operation::RetentionEnds(deletion) => {
                self.known().over.insert(deletion);
                self.end_retention(deletion).await;
            }
            asked => panic!("somebody asks for {asked:?}"),
        }
    }

    async fn now(&self) -> Timestamp {
        self.world.store.operations.database_now().await.expect("a clock")
    }

    /// The attempts of a resource, the current one last.
    async fn attempts(&self, thing: Key) -> Vec<ProvisionedResourceId> {
        let resource = Some(ResourceId::new(self.thing(thing).id));
        let of = AttemptFilter { resource, ..AttemptFilter::default() };
        let mut lines = self.world.store.broker.attempt_lines(of, 100).await.expect("lines");
        lines.sort_unstable_by_key(|line| line.number);
        lines.iter().map(|line| line.id).collect()
    }

    /// Writes a deletion as if time had passed.
    async fn change(&self, key: Key, change: impl Fn(Deletion, Timestamp) -> Deletion + Sync) {
        let mut rule = |snapshot: &DeletionSnapshot| {
            let after = change(snapshot.deletion.clone(), snapshot.now);
            let write = Write::Deletion(DeletionWrite::DeletionUpdate(after));
            Ok(Commit { writes: vec![write], ..Commit::default() })
        };
        let id = self.deletion(key);
        let store = &self.world.store.deletion;
        store.deletion_decide(id, &mut rule).await.expect("time passes");
    }

    async fn end_retention(&self, key: Key) {
        let mut rule = |snapshot: &DeletionSnapshot| {
            let DeletionSnapshot { now, deletion, .. } = snapshot;
            if deletion.state != DeletionState::Done {
                return Ok(Commit::default());
            }
            let after = Deletion { restorable_until: Some(*now), ..deletion.clone() };
            let write = Write::Deletion(DeletionWrite::DeletionUpdate(after));
            Ok(Commit { writes: vec![write], ..Commit::default() })
        };
        let id = self.deletion(key);
        let ended = self.world.store.deletion.deletion_decide(id, &mut rule).await;
        if let Err(error) = ended {
            assert_eq!(of_store(error), ErrorKind::RevisionStale, "somebody purges it now");
        }
    }

    /// A protection holds again, also of something that is deleted.
    async fn end_lift(&self, thing: Key) {
        let subject = self.thing(thing);
        let protection = self.protections().await.remove(&subject).expect("a protection");
        let before = self.now().await.minus(HOUR);
        let lifted = protection.lifted.map(|lifted| Lifted { until: before, ..lifted });
        let write = DeletionWrite::Protect(Protection { lifted, ..protection });
        let commit = Commit { writes: vec![Write::Deletion(write)], ..Commit::default() };
        // Any decision may write it; what it reads does not matter.
        let mut rule = |_: &_| Ok(commit.clone());
        let store = self.world.store.kind::<Cloud>();
        store.decide("local", &mut rule).await.expect("time passes");
    }

    async fn protections(&self) -> BTreeMap<Subject, Protection> {
        let found = self.world.store.deletion.protection_list(None, ALL).await;
        found.expect("protections").into_iter().map(|one| (one.subject, one)).collect()
    }

    /// The loop, until nothing changes. What it found withheld is looked at again at once,
    /// as if an hour had passed.
    pub(super) async fn pass(&self) {
        for _ in 0..PASSES {
            let over = self.known().over.clone();
            for key in over {
                self.end_retention(key).await;
            }
            let passed = self.runner.pass().await.expect("a pass");
            if passed.advanced == 0 && passed.purged == 0 {
                return;
            }
        }
        panic!("the loop over deletions goes on and on");
    }

    /// What has to follow a request in which a project was created: something can be declared
    /// in it.
    pub(super) async fn furnish(&self, key: Key) {
        let project = self.thing(key).id.to_string();
        self.world.assign(&project, self.credential).await.expect("an assignment");
        self.world.assignment(&project, "local").await.expect("a place");
    }

    /// What the rows say; those of plans only if they may have changed.
    pub(super) async fn view(&self, with_plans: bool) -> View {
        let mut view = View::new();
        let stores = &self.world.store;
        // Every id of this sequence is later, and those of the others are earlier.
        let begin = Uuid::from_u128(Numbered::new(self.sequence, 0).first);
        let page = Page { after: Some(DeletionId::new(begin)), limit: 10_000 };
        let every = DeletionFilter::default();
        let deletions = stores.deletion.deletion_list(&every, page).await.expect("deletions");
        for deletion in deletions.iter() {
            let Deletion { state, parent, cascade, resources, .. } = *deletion;
            let parent = parent.map(|parent| request_of(parent.as_uuid()));
            let key = request_of(deletion.id.as_uuid());
            view.insert(deletion_line(key, (state, parent, cascade, resources)));
        }
        let now = self.now().await;
        let protections = self.protections().await;
        let Known { things, plans, .. } = self.known().clone();
        let filter = ResourceFilter { show_deleted: true, ..ResourceFilter::default() };
        let page = Page { after: Some(ResourceId::new(begin)), limit: 10_000 };
        let listed = stores.broker.resource_list(&filter, page).await.expect("resources");
        let listed = listed.into_iter().map(|row| row.expect("the row is valid"));
        let mut resources: BTreeMap<Uuid, ResourceSnapshot> =
            listed.map(|row| (row.resource.id.as_uuid(), row)).collect();
        for (key, subject) in &things {
            let protected = protections.get(subject).map(|protection| !protection.holds(now));
            let thing = match subject.kind {
                SubjectKind::Resource => resources.remove(&subject.id).map(resource_view),
                _ => self.row_view(*subject).await,
            };
            match thing {
                Some(thing) => view.insert(thing_line(*key, &thing, protected)),
                None => protected.is_some() && view.insert(format!("{key} is protected")),
            };
        }
        let key_of = |id: Uuid| things.iter().find(|(_, one)| one.id == id).map(|(key, _)| *key);
        for (key, id) in plans.into_iter().filter(|_| with_plans) {
            let plan = stores.deletion.plan_fetch(id).await.expect("a fetch").expect("a plan");
            let used = plan.used_by.map(|id| request_of(id.as_uuid()));
            let approved = plan.approval.and_then(|approval| self.who(&approval.by));
            let members = plan.members.parse().expect("members").into_iter().map(|member| {
                let attempt = usize::try_from(member.attempt.unwrap_or_default());
                let protected = member.protected.map(|reason| reason != WHY);
                let what = (member.name, attempt.unwrap_or_default(), protected);
                (key_of(member.subject.id).unwrap_or_default(), what)
            });
            view.insert(plan_line(key, used, approved, &members.collect()));
        }
        let page = Page { after: None, limit: 10_000 };
        let on = stores.deletion.brake_list(page).await.expect("brakes");
        view.extend(on.iter().filter_map(|brake| self.who(&brake.name)).map(stopped_line));
        view
    }

    /// Whose key has this name.
    fn who(&self, name: &str) -> Option<Who> {
        self.callers.iter().find(|(_, caller)| caller.name == name).map(|(who, _)| *who)
    }

    async fn row_view(&self, subject: Subject) -> Option<ThingView> {
        let stores = &self.world.store;
        let id = subject.id.to_string();
        let (name, deletion, deleted_at) = if subject.kind == SubjectKind::Project {
            let row = stores.kind::<Project>().fetch(&id, true).await.expect("a fetch")?;
            (row.name, row.deletion_id, row.deleted_at)
        } else {
            let row = stores.kind::<Cloud>().fetch(&id, true).await.expect("a fetch")?;
            (row.name, row.deletion_id, row.deleted_at)
        };
        Some(ThingView {
            name: name.to_string(),
            leaving: false,
            deleted: deleted_at.is_some(),
            deletion: deletion.map(|id| request_of(id.as_uuid())),
            attempts: 0,
        })
    }

    /// The same of the model.
    pub(super) fn expected(&self, model: &Model, with_plans: bool) -> View {
        let things = model.things.iter().map(|(key, thing)| {
            let shown = ThingView {
                name: self.named(thing.kind, thing.name),
                leaving: thing.leaving,
                deleted: thing.deleted,
                deletion: thing.deletion,
                attempts: thing.attempts.len(),
            };
            thing_line(*key, &shown, thing.protection.map(|protection| protection.lifted))
        });
        let deletions = model.deletions.iter().map(|(key, deletion)| {
            let super::model::Deletion { parent, cascade, resources, .. } = *deletion;
            deletion_line(*key, (deletion.state(), parent, cascade, resources))
        });
        let plans = model.plans.iter().filter(|_| with_plans).map(|(key, plan)| {
            let read = plan.read.iter().map(|(key, (name, attempts, protected))| {
                (*key, (self.named(model.kind_of(*key), *name), *attempts, *protected))
            });
            plan_line(*key, plan.used, plan.approved, &read.collect())
        });
        let stopped = model.brakes.iter().filter(|(_, brake)| brake.tripped);
        let stopped = stopped.map(|(who, _)| stopped_line(*who));
        things.chain(deletions).chain(plans).chain(stopped).collect()
    }

    /// Every state that a deletion entered is announced once and in order; nothing is left
    /// of what was purged, and the members of every deletion are those of the model.
    pub(super) async fn check_end(&self, model: &Model) {
        let mut announced: BTreeMap<Uuid, Vec<String>> = BTreeMap::new();
        for event in self.world.relay_all(0).await {
            announced.entry(event.aggregate_id).or_default().push(event.event_type);
        }
        for (key, deletion) in &model.deletions {
            let id = self.deletion(*key);
            let mut found = announced.remove(&id.as_uuid()).unwrap_or_default();
            let before = found.len();
            found.retain(|name| name != "deletion.BreakGlass");
            assert_eq!(before - found.len(), usize::from(deletion.break_glass), "{key}: {found:?}");
            let states: Vec<_> = deletion.entered.iter().map(|state| event(*state)).collect();
            assert_eq!(found, states, "what deletion {key} announced");
            let members = self.world.store.deletion.deletion_members(id, 100).await;
            let members = members.expect("members").shown;
            let mut members: Vec<_> = members.iter().map(|member| member.subject).collect();
            let mut expected: Vec<_> =
                model.members(*key).iter().map(|key| self.thing(*key)).collect();
            members.sort_unstable();
            expected.sort_unstable();
            assert_eq!(members, expected, "the members of deletion {key}");
        }
        for (who, caller) in &self.callers {
            let key = caller.key_id.expect("a key").as_uuid();
            let found = announced.remove(&key).unwrap_or_default();
            let found = found.iter().filter(|name| name.starts_with("deletion.Brake")).count();
            let expected = model.brakes.get(who).map_or(0, |brake| brake.changes);
            assert_eq!(found, expected, "what the brake of {who:?} announced");
        }
        for (key, kind) in &model.purged {
            if *kind == Kind::Resource {
                assert_eq!(self.attempts(*key).await, [], "attempts of {key}, which is purged");
            }
        }
    }
}

struct ThingView {
    name: String,
    leaving: bool,
    deleted: bool,
    deletion: Option<Key>,
    attempts: usize,
}

fn resource_view(ResourceSnapshot { resource, attempt, .. }: ResourceSnapshot) -> ThingView {
    ThingView {
        name: resource.handle.to_string(),
        leaving: attempt.phase().is_deletion(),
        deleted: resource.deleted_at.is_some(),
        deletion: resource.deletion_id.map(|id| request_of(id.as_uuid())),
        attempts: usize::try_from(attempt.attempt()).unwrap_or_default(),
    }
}

fn thing_line(key: Key, thing: &ThingView, lifted: Option<bool>) -> String {
    let ThingView { name, leaving, deleted, deletion, attempts } = thing;
    format!(
        "{key}: {name}, attempts {attempts}, leaving {leaving}, deleted {deleted} by {deletion:?}, \
         protected and lifted {lifted:?}"
    )
}

type DeletionView = (DeletionState, Option<Key>, bool, i64);

/// The parent of what was cancelled does not matter, and depends on whether the deletion of
/// the parent found it before or after.
fn deletion_line(key: Key, (state, parent, cascade, resources): DeletionView) -> String {
    let parent = parent.filter(|_| state != DeletionState::Cancelled);
    format!("deletion {key}: {state}, parent {parent:?}, cascade {cascade}, of {resources}")
}

type Members = BTreeMap<Key, (String, usize, Option<bool>)>;

fn plan_line(key: Key, used: Option<Key>, approved: Option<Who>, members: &Members) -> String {
    format!("plan {key}: used by {used:?}, approved by {approved:?}, members {members:?}")
}

fn stopped_line(who: Who) -> String {
    format!("{who:?} is stopped")
}

fn callers_name(callers: &BTreeMap<Who, Caller>, who: Who) -> &str {
    callers.get(&who).map_or("", |caller| &caller.name)
}

fn kind(crate::Error { refusal, .. }: crate::Error) -> ErrorKind {
    refusal.kind
}

fn of_store(error: store::Error) -> ErrorKind {
    crate::Error::from(error).kind()
}

fn kind_of(subject: Subject) -> Kind {
    match subject.kind {
        SubjectKind::Project => Kind::Project,
        SubjectKind::Cloud => Kind::Cloud,
        _ => Kind::Resource,
    }
}

const fn event(state: DeletionState) -> &'static str {
    match state {
        DeletionState::Scheduled => "deletion.Scheduled",
        DeletionState::Running => "deletion.Started",
        DeletionState::Done => "deletion.Done",
        DeletionState::Purging => "deletion.Purging",
        DeletionState::Purged => "deletion.Purged",
        DeletionState::Cancelled => "deletion.Cancelled",
        DeletionState::Restored => "deletion.Restored",
    }
}

impl World {
    /// A caller with a key of its own.
    async fn caller(&self, who: Who, maker: &Actor) -> Caller {
        let role = if who.is_admin() { Role::Admin } else { Role::Operator };
        let owner = format!("{who:?}").to_lowercase();
        let new = NewKey { owner, ..self.new_key(role, None) };
        let target = KeyTarget::New { name: new.name.clone(), project: None };
        let mut rule = |snapshot: &_| api_key_rules::create(snapshot, &new, maker);
        self.store.kind::<ApiKey>().decide(&target, &mut rule).await.expect("a key");
        Caller {
            name: new.name,
            role,
            principal: new.principal,
            project: None,
            key_id: Some(new.id),
            correlation_id: "model".to_owned(),
        }
    }
}
