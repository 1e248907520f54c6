//! What an apply would do to the servers of a workspace. Writes nothing.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use slipway_core::access::audit::Actor;
use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::commit::Commit;
use slipway_core::deletion::door::Doored;
use slipway_core::error::Refusal;
use slipway_core::topology::declared::Declared;
use slipway_core::topology::gates::Door;
use slipway_core::topology::group::Group;
use slipway_core::topology::plan::{self, Created};
use slipway_core::topology::rollout::{self, Way};
use slipway_core::topology::scale::{Asked, OfServer};
use slipway_core::topology::server::Server;

use super::apply::Prepared;
use super::inventory::Gathered;
use super::port::ApplySnapshot;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::broker::port::{RedeclareKey, Redeclared};
use crate::deletion::request::DeleteOptions;
use crate::ports::store;
use crate::{Context, Error};

/// Servers whose way is looked up, each in a decision of its own. The others change like these.
const LOOKED_UP: usize = 100;

/// See the module.
#[derive(Debug, Clone)]
pub struct Plan {
    pub digest: String,
    pub created: Vec<Created>,
    pub servers: Vec<Planned>,
    /// Servers that change, beside those that are named.
    pub further: usize,
}

/// A server that changes, or goes if there is no way for it to stay.
#[derive(Debug, Clone)]
pub struct Planned {
    pub server: String,
    pub group: String,
    pub way: Option<Way>,
    /// What is in its way.
    pub refusal: Option<Refusal>,
}

/// Plans the declaration. What it is refused for as a whole, [`super::apply::apply`] says.
pub async fn plan(
    context: &Context,
    caller: &Caller,
    project: &str,
    name: &str,
    declared: &Declared,
) -> Result<Option<Plan>, Error> {
    let actor = authorise(caller, Operation::FilesApply)?;
    let prepared = Prepared::gather(context, caller, project, name, declared).await?;
    let mut found = None;
    let mut rule = |snapshot: &ApplySnapshot| {
        found = prepared.plan(snapshot, caller);
        Ok(Commit::default())
    };
    context.stores.topology.workspace_apply(&prepared.key(), &mut rule).await?;
    let Some(plan::Plan { digest, created, changed, deleted }) = found else { return Ok(None) };
    let further = changed.len().saturating_sub(LOOKED_UP);
    let (mut servers, mut inventories) = (Vec::new(), HashMap::new());
    for (server, group) in changed.into_iter().take(LOOKED_UP) {
        let listed: &Gathered = match inventories.entry(group.id) {
            Entry::Occupied(listed) => listed.into_mut(),
            Entry::Vacant(missing) => {
                let listed = context.inventories.of_group(&context.stores, group.id).await?;
                missing.insert(listed)
            }
        };
        let (way, refusal) = match way(context, (caller, &actor), &server, &group, listed).await? {
            Ok(Way::Nothing) => continue,
            Ok(way) => (way, None),
            Err(refusal) => (Way::Nothing, Some(refusal)),
        };
        let group = group.spec.name.to_string();
        servers.push(Planned { server: server.name, group, way: Some(way), refusal });
    }
    servers.extend(deleted.into_iter().map(|gone| Planned {
        server: gone.server,
        group: gone.group,
        way: None,
        refusal: gone.refusal,
    }));
    Ok(Some(Plan { digest, created, servers, further }))
}

/// How a server would get what its group will declare, decided and not written.
async fn way(
    context: &Context,
    (caller, actor): (&Caller, &Actor),
    server: &Server,
    group: &Group,
    listed: &Gathered,
) -> Result<Result<Way, Refusal>, Error> {
    let ask = DeleteOptions::default().ask(context, caller)?;
    let mut answer = None;
    let mut rule = |snapshot: &Doored<OfServer<RedeclareSnapshot>>| {
        let mut later = snapshot.clone();
        if let Some(owner) = &mut later.of.owner {
            owner.group.spec = group.spec.clone();
        }
        let (door, inventory) = (Door::Replace { surge: true }, listed.now());
        let asked = Asked { door, caller: caller.role, inventory: &inventory, ask: &ask };
        answer = Some(rollout::change(&later, &asked, actor).map(|changed| changed.way));
        Ok(Commit::default())
    };
    let (version, of) = (group.spec.version.clone(), Redeclared::WithSurge);
    let key = RedeclareKey { resource: server.id, version, of };
    let input = ask.input(context.settings.deletion);
    match context.stores.topology.server_decide_replacement(&key, input, &mut rule).await {
        // It is gone since.
        Ok(()) | Err(store::Error::NotFound { .. }) => Ok(answer.unwrap_or(Ok(Way::Nothing))),
        Err(error) => Err(error.into()),
    }
}
