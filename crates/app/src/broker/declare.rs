//! Declaring a resource.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_core::access::audit::Actor;
use slipway_core::access::idempotency::{Entry, Request};
use slipway_core::broker::declare::{self, Declaration};
use slipway_core::broker::snapshot::DeclareSnapshot;
use slipway_core::broker::transition::{Transition, transitions};
use slipway_core::commit::Commit;
use slipway_core::deletion::protection;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{ProvisionedResourceId, ResourceId};
use slipway_core::text::{Handle, check_reference};

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::idempotency::{bind, record};
use crate::broker::port::DeclareKey;
use crate::{Context, Error};

/// The project of a declaration that names none.
pub const DEFAULT_PROJECT: &str = "default";

/// A declaration as received, unchecked.
#[derive(Debug, Clone, Default)]
pub struct Declare {
    pub project: Option<String>,
    pub handle: String,
    pub blueprint: String,
    pub version: Option<String>,
    pub credential: Option<String>,
    pub parameters: BTreeMap<String, Value>,
    pub labels: BTreeMap<String, String>,
    /// Whether it is protected from deletion.
    pub protected: bool,
    /// Binds the caller's idempotency key to the resource.
    pub request: Option<Request>,
}

/// Accepts the declaration, or refuses it and writes nothing.
pub async fn declare(
    context: &Context,
    caller: &Caller,
    input: Declare,
) -> Result<ResourceId, Error> {
    let mut asked = Asked::new(context, caller, input)?;
    let key = asked.key.clone();
    let mut rule = |snapshot: &_| asked.decide(caller, snapshot);
    context.stores.broker.decide_declaration(&key, &mut rule).await?;
    Ok(asked.declared(context))
}

/// Accepts or refuses each of many declarations, each as if it were alone; few commits for
/// all of them, so that a crash leaves none or all of a commit. `beside` is written with the
/// declaration of the same number.
pub async fn declare_all(
    context: &Context,
    caller: &Caller,
    inputs: Vec<Declare>,
    beside: impl Fn(usize, &mut Commit) + Sync,
) -> Result<Vec<Result<ResourceId, Error>>, Error> {
    let mut asked: Vec<Result<Asked, Error>> =
        inputs.into_iter().map(|input| Asked::new(context, caller, input)).collect();
    let numbers: Vec<usize> = (0..asked.len()).filter(|number| asked[*number].is_ok()).collect();
    let keys = asked.iter().flatten().map(|asked| asked.key.clone()).collect::<Vec<_>>();
    let mut rule = |number: usize, snapshot: &DeclareSnapshot| {
        let number = numbers[number];
        let Ok(asked) = &mut asked[number] else { return Ok(Commit::default()) };
        let mut commit = asked.decide(caller, snapshot)?;
        beside(number, &mut commit);
        Ok(commit)
    };
    let decided = context.stores.broker.decide_declarations(&keys, &mut rule).await?;
    let mut decided = decided.into_iter();
    let outcome = |asked: Result<Asked, Error>| {
        let asked = asked?;
        match decided.next() {
            Some(decided) => decided?,
            None => return Err(Refusal::new(ErrorKind::Internal, "a declaration got lost").into()),
        }
        Ok(asked.declared(context))
    };
    Ok(asked.into_iter().map(outcome).collect())
}

/// A declaration whose references were checked.
struct Asked {
    declaration: Declaration,
    key: DeclareKey,
    actor: Actor,
    record: Option<Entry>,
    protected: bool,
    transitioned: Vec<Transition>,
}

impl Asked {
    fn new(context: &Context, caller: &Caller, input: Declare) -> Result<Self, Error> {
        let actor = authorise(caller, Operation::ResourceDeclare)?;
        // Before the database is asked for them; the rule checks all the rest.
        let references = [
            ("project", input.project.as_deref()),
            ("blueprint", Some(input.blueprint.as_str())),
            ("version", input.version.as_deref()),
            ("credential", input.credential.as_deref()),
        ];
        let wrong = references.into_iter().filter_map(|(field, reference)| {
            reference.and_then(|text| check_reference(field, text).err())
        });
        Refusal::all(wrong.map(Refusal::from))?;
        let declaration = Declaration {
            resource_id: ResourceId::new(context.entropy.uuid()),
            provisioned_resource_id: ProvisionedResourceId::new(context.entropy.uuid()),
            handle: input.handle,
            labels: input.labels,
            project: input.project.unwrap_or_else(|| usual_project(caller)),
            blueprint: input.blueprint,
            version: input.version,
            credential: input.credential,
            parameters: input.parameters,
            owner: None,
        };
        let record = record(context, input.request, declaration.resource_id.as_uuid());
        let key = DeclareKey {
            project: declaration.project.clone(),
            // None is held by a text that is no handle, and some cannot be looked up.
            handle: Handle::parse(&declaration.handle)
                .map(|handle| handle.to_string())
                .unwrap_or_default(),
            blueprint: declaration.blueprint.clone(),
            version: declaration.version.clone(),
            credential: declaration.credential.clone(),
        };
        let (protected, transitioned) = (input.protected, Vec::new());
        Ok(Self { declaration, key, actor, record, protected, transitioned })
    }

    fn decide(&mut self, caller: &Caller, snapshot: &DeclareSnapshot) -> Result<Commit, Refusal> {
        let seen = caller.project.map(|own| snapshot.within(own));
        let snapshot = seen.as_ref().unwrap_or(snapshot);
        let (declaration, actor) = (&self.declaration, &self.actor);
        let commit = declare::declare(snapshot, declaration, actor)?;
        self.transitioned = transitions(&commit, None);
        let project = snapshot.project.filter(|_| self.protected);
        let commit = match project {
            Some(project) => protection::declared(
                commit,
                declaration.resource_id.into(),
                Some(project),
                &declaration.handle,
                actor,
                snapshot.now,
            ),
            None => commit,
        };
        Ok(bind(commit, self.record.as_ref()))
    }

    /// After the commit.
    fn declared(&self, context: &Context) -> ResourceId {
        let Declaration { resource_id, provisioned_resource_id: attempt_id, .. } = self.declaration;
        // The only log line that connects a request with the ticks of the loops.
        tracing::info!(%resource_id, %attempt_id, "declared");
        context.meter.transitioned(&self.transitioned);
        context.wakes.wake();
        resource_id
    }
}

/// The project of a declaration that names none: the caller's own, if it reaches only one.
fn usual_project(caller: &Caller) -> String {
    caller.project.map_or_else(|| DEFAULT_PROJECT.to_owned(), |own| own.to_string())
}
