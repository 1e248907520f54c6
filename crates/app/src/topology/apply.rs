//! Applying a declared workspace. Before the decision it gathers what the provider lists of the
//! groups that would shrink.

use std::collections::BTreeMap;

use slipway_core::catalog::Name;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{GroupId, Revision, WorkspaceId};
use slipway_core::precondition::Expected;
use slipway_core::text::check_reference;
use slipway_core::topology::apply::{self, Circumstances, Desired};
use slipway_core::topology::declared::Declared;
use slipway_core::topology::group::GroupSpec;
use slipway_core::topology::inventory::Inventory;
use slipway_core::topology::plan::{self, Plan};
use slipway_core::topology::workspace::{Workspace, WorkspaceSnapshot};

use super::inventory::Gathered;
use super::port::{ApplyKey, ApplySnapshot, MadeOf, WorkspaceKey};
use super::run;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::ports::store;
use crate::{Context, Error};

/// Accepts the declaration, or refuses it and writes nothing. With the revision of the workspace
/// that was read, it is refused if the workspace was written since; with the digest of a plan, if
/// something else would happen by now.
pub async fn apply(
    context: &Context,
    caller: &Caller,
    project: &str,
    name: &str,
    declared: &Declared,
    (read, planned): (Option<Revision>, Option<&str>),
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::FilesApply)?;
    let prepared = Prepared::gather(context, caller, project, name, declared).await?;
    let mut rule = |snapshot: &ApplySnapshot| {
        let of = seen(&snapshot.of, caller);
        if let (Some(read), Some(workspace)) = (read, &of.workspace) {
            Expected::Exactly(read).check(WorkspaceId::KIND, workspace.revision)?;
        }
        if let (Some(planned), Some(plan)) = (planned, prepared.plan(snapshot, caller)) {
            plan.check(planned)?;
        }
        let now = prepared.listed();
        let circumstances =
            Circumstances { caller: caller.role, declared: &snapshot.declared, inventories: &now };
        apply::apply(&of, &prepared.desired, &circumstances, &actor)
    };
    context.stores.topology.workspace_apply(&prepared.key(), &mut rule).await?;
    run::wake(context).await;
    Ok(())
}

/// A checked declaration, and what the provider lists of the groups that it shrinks.
pub(super) struct Prepared {
    desired: Desired,
    inventories: BTreeMap<GroupId, Gathered>,
}

impl Prepared {
    pub(super) async fn gather(
        context: &Context,
        caller: &Caller,
        project: &str,
        name: &str,
        declared: &Declared,
    ) -> Result<Self, Error> {
        check_reference("metadata.project", project).map_err(Refusal::from)?;
        let name = Name::parse("metadata.name", name).map_err(Refusal::from)?;
        let specs = declared.check()?;
        check_references(&specs)?;
        let desired = Desired {
            id: WorkspaceId::new(context.entropy.uuid()),
            group_ids: specs.iter().map(|_| GroupId::new(context.entropy.uuid())).collect(),
            project: project.to_owned(),
            name,
            specs,
        };
        let inventories = inventories(context, caller, &desired).await?;
        Ok(Self { desired, inventories })
    }

    pub(super) fn key(&self) -> ApplyKey {
        let Desired { project, name, specs, .. } = &self.desired;
        ApplyKey {
            workspace: WorkspaceKey::Named { project: project.clone(), name: name.to_string() },
            groups: specs.iter().map(made_of).collect(),
        }
    }

    /// What it would do; `None` if the project is not there for the caller.
    pub(super) fn plan(&self, snapshot: &ApplySnapshot, caller: &Caller) -> Option<Plan> {
        let of = seen(&snapshot.of, caller);
        let now = self.listed();
        let circumstances =
            Circumstances { caller: caller.role, declared: &snapshot.declared, inventories: &now };
        Some(plan::plan(&of, of.project?, &self.desired, &circumstances))
    }

    fn listed(&self) -> BTreeMap<GroupId, Inventory> {
        self.inventories.iter().map(|(id, found)| (*id, found.now())).collect()
    }
}

/// A project out of the caller's reach is as unknown as one that is not there.
fn seen(snapshot: &WorkspaceSnapshot, caller: &Caller) -> WorkspaceSnapshot {
    let project = snapshot.project.filter(|project| caller.reaches(*project));
    WorkspaceSnapshot { project, ..snapshot.clone() }
}

fn made_of(spec: &GroupSpec) -> MadeOf {
    MadeOf {
        blueprint: spec.blueprint.clone(),
        version: spec.version.clone(),
        credential: spec.credential.clone(),
    }
}

fn check_references(specs: &[GroupSpec]) -> Result<(), Refusal> {
    let wrong = specs.iter().flat_map(|spec| {
        let list = if spec.single { "servers" } else { "groups" };
        let references = [
            ("blueprint", Some(spec.blueprint.as_str())),
            ("version", spec.version.as_deref()),
            ("credential", spec.credential.as_deref()),
        ];
        references.into_iter().filter_map(move |(field, text)| {
            let field = format!("spec.{list}.{}.{field}", spec.name);
            check_reference(&field, text?).err().map(Refusal::from)
        })
    });
    Refusal::all(wrong)
}

/// The lists of the groups that the declaration would shrink, as they are now. What changes
/// before the decision is found there: a group that shrinks only then was not listed, and is
/// refused.
async fn inventories(
    context: &Context,
    caller: &Caller,
    desired: &Desired,
) -> Result<BTreeMap<GroupId, Gathered>, Error> {
    let mut found = BTreeMap::new();
    let mut snapshot = None;
    let key =
        WorkspaceKey::Named { project: desired.project.clone(), name: desired.name.to_string() };
    // Reads with the same rules as the decision, and writes nothing.
    let mut rule = |loaded: &WorkspaceSnapshot| {
        snapshot = Some(seen(loaded, caller));
        Ok(slipway_core::commit::Commit::default())
    };
    match context.stores.kind::<Workspace>().decide(&key, &mut rule).await {
        Ok(()) | Err(store::Error::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let Some(snapshot) = snapshot else { return Ok(found) };
    let Some(workspace) = &snapshot.workspace else { return Ok(found) };
    if snapshot.project.is_none() {
        return Err(missing().into());
    }
    for change in apply::changes(&snapshot, workspace, desired) {
        if !apply::drops(&snapshot, &change).is_empty() {
            let id = change.after.id;
            let inventory = context.inventories.of_group(&context.stores, id).await?;
            found.insert(id, inventory);
        }
    }
    Ok(found)
}

fn missing() -> Refusal {
    let message = "there is no such project; check its name or id";
    Refusal::new(ErrorKind::ProjectNotFound, message).at("metadata.project")
}
