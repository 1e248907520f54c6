//! Declaring a resource: every precondition is checked here, before anything exists.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::BrokerWrite;
use crate::broker::attempt::{NewAttempt, ProvisionedResource};
use crate::broker::event;
use crate::broker::phase::Phase;
use crate::broker::resource::Resource;
use crate::broker::snapshot::{CredentialView, DeclareSnapshot};
use crate::catalog::blueprint_version::{BlueprintVersion, Engine};
use crate::catalog::parameters::ParameterValues;
use crate::commit::{Commit, StateChange, Write};
use crate::error::{ErrorKind, Refusal, or_fault};
use crate::ids::{ProjectId, ProvisionedResourceId, ResourceId, Revision};
use crate::placement::namespace::Placement;
use crate::placement::provider_config;
use crate::text::{Handle, Labels};
use crate::topology::owner::Owner;

/// What an operator asks for. The store resolves the references into the
/// snapshot; their texts are kept for error messages.
#[derive(Debug, Clone)]
pub struct Declaration {
    pub resource_id: ResourceId,
    pub provisioned_resource_id: ProvisionedResourceId,
    /// Checked with the rest, so that one answer names all faults.
    pub handle: String,
    pub labels: BTreeMap<String, String>,
    pub project: String,
    pub blueprint: String,
    pub version: Option<String>,
    pub credential: Option<String>,
    pub parameters: BTreeMap<String, Value>,
    /// Of a server.
    pub owner: Option<Owner>,
}

/// Checks every precondition and builds slot, attempt and event. A refusal names
/// all faults at once, in a fixed order.
pub fn declare(
    snapshot: &DeclareSnapshot,
    declaration: &Declaration,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let desired = Desired {
        project: &declaration.project,
        blueprint: &declaration.blueprint,
        version: declaration.version.as_deref(),
        credential: declaration.credential.as_deref(),
        parameters: &declaration.parameters,
    };
    let mut faults = Vec::new();
    if snapshot.project_leaving {
        let message = format!(
            "project `{}` is being deleted, or will be; name another project, or cancel its deletion (`slipway deletion list` shows it)",
            declaration.project
        );
        faults.push(Refusal::new(ErrorKind::ProjectLeaving, message).at("project"));
    }
    let handle = or_fault(Handle::parse(&declaration.handle), &mut faults);
    faults.extend(Labels::faults(&declaration.labels).map(Refusal::from));
    let checked = gather(snapshot, desired, &mut faults);
    if let (Some(_), Some(holder)) = (snapshot.project, snapshot.holder) {
        let message = format!(
            "handle `{}` is taken in project `{}`; choose another, or delete resource {holder} and wait until it is gone",
            declaration.handle, declaration.project
        );
        let taken = Refusal::new(ErrorKind::HandleTaken, message).at("handle");
        faults.push(taken.with(json!({ "resource_id": holder })));
    }
    Refusal::all(faults)?;
    let labels = Labels::parse(declaration.labels.clone())?;
    let (handle, checked) = handle.zip(checked).ok_or_else(in_part)?;
    let Checked { project_id, blueprint, credential, placement, parameter_values } = checked;
    let resource = Resource {
        id: declaration.resource_id,
        project_id,
        handle,
        labels,
        revision: Revision::FIRST,
        deletion_id: None,
        surge: None,
        owner: declaration.owner.clone(),
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let attempt = ProvisionedResource::declare(
        NewAttempt {
            id: declaration.provisioned_resource_id,
            resource_id: resource.id,
            project_id,
            blueprint_version_id: blueprint.id,
            cloud_credential_id: credential.id,
            attempt: 1,
            parameter_values,
            partition: placement.cluster_id.into(),
            beside: None,
        },
        snapshot.now,
    )
    .map_err(|error| Refusal::invalid(error.field, error.problem))?;

    let event = event::announce(event::REQUESTED, &attempt, Revision::FIRST, snapshot.now);
    let subject = About::new(resource.id).of(project_id).at(Revision::FIRST);
    let details = json!({
        "handle": resource.handle,
        "blueprint": blueprint.slug,
        "version": blueprint.version,
        "provisioned_resource_id": attempt.id(),
    });
    let change = StateChange {
        subject: attempt.id().into(),
        revision: Revision::FIRST,
        at: snapshot.now,
        from: None,
        to: Phase::Pending.as_str(),
        why: "declared".to_owned(),
    };
    let audit = AuditEntry::new("resource.declare", actor, subject, snapshot.now);
    let audit = audit.with(details).changing(change);
    Ok(Commit {
        wakes: vec![attempt.id().into()],
        writes: vec![
            Write::Broker(BrokerWrite::ResourceInsert(resource)),
            Write::Broker(BrokerWrite::AttemptInsert(attempt)),
        ],
        events: vec![event],
        audit: vec![audit],
        ..Commit::default()
    })
}

/// What a declaration asks for, or a retry that corrects one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Desired<'a> {
    pub(crate) project: &'a str,
    pub(crate) blueprint: &'a str,
    pub(crate) version: Option<&'a str>,
    pub(crate) credential: Option<&'a str>,
    pub(crate) parameters: &'a BTreeMap<String, Value>,
}

/// What it resolves to once every precondition holds.
#[derive(Debug)]
pub(crate) struct Checked<'a> {
    pub(crate) project_id: ProjectId,
    pub(crate) blueprint: &'a BlueprintVersion,
    pub(crate) credential: &'a CredentialView,
    pub(crate) placement: &'a Placement,
    pub(crate) parameter_values: ParameterValues,
}

/// Checks the preconditions in a fixed order. A refusal names all faults at once.
pub(crate) fn check<'a>(
    snapshot: &'a DeclareSnapshot,
    desired: Desired<'_>,
) -> Result<Checked<'a>, Refusal> {
    let mut faults = Vec::new();
    let checked = gather(snapshot, desired, &mut faults);
    Refusal::all(faults)?;
    checked.ok_or_else(in_part)
}

/// Checks what can be checked: what depends on something that is at fault itself
/// is left out. `None` if there are faults.
fn gather<'a>(
    snapshot: &'a DeclareSnapshot,
    desired: Desired<'_>,
    faults: &mut Vec<Refusal>,
) -> Option<Checked<'a>> {
    let project = snapshot.project.ok_or_else(|| {
        let message = format!("there is no project `{}`; name an existing one", desired.project);
        Refusal::new(ErrorKind::ProjectNotFound, message).at("project")
    });
    let project = or_fault(project, faults);
    let blueprint = or_fault(blueprint(snapshot, desired), faults);
    let credential =
        project.and_then(|_| or_fault(credential(snapshot, desired, blueprint), faults));
    let placement = project.and_then(|_| or_fault(placement(snapshot, desired, blueprint), faults));
    let values = blueprint.and_then(|blueprint| {
        or_fault(blueprint.parameter_schema.validate(desired.parameters.clone()), faults)
    });
    Some(Checked {
        project_id: project?,
        blueprint: blueprint?,
        credential: credential?,
        placement: placement?,
        parameter_values: values?,
    })
}

/// Whatever is missing left a fault, so this is never reached.
fn in_part() -> Refusal {
    Refusal::new(ErrorKind::Internal, "a declaration was checked in part")
}

fn blueprint<'a>(
    snapshot: &'a DeclareSnapshot,
    desired: Desired<'_>,
) -> Result<&'a BlueprintVersion, Refusal> {
    let Some(blueprint) = &snapshot.blueprint else {
        let named = match desired.version {
            Some(version) => format!("`{}` in version `{version}`", desired.blueprint),
            None => format!("`{}`", desired.blueprint),
        };
        let message =
            format!("there is no published blueprint {named}; check its slug and version");
        return Err(Refusal::new(ErrorKind::BlueprintNotFound, message).at("blueprint"));
    };
    if snapshot.blueprint_retired {
        let message = format!(
            "version `{}` of blueprint `{}` is retired; name one that is not",
            blueprint.version, blueprint.slug
        );
        return Err(Refusal::new(ErrorKind::BlueprintVersionRetired, message).at("version"));
    }
    Ok(blueprint)
}

fn credential<'a>(
    snapshot: &'a DeclareSnapshot,
    desired: Desired<'_>,
    blueprint: Option<&BlueprintVersion>,
) -> Result<&'a CredentialView, Refusal> {
    let refuse = |kind, message: String| Err(Refusal::new(kind, message).at("credential"));
    let Some(credential) = &snapshot.credential else {
        return Err(credential_missing(snapshot, desired));
    };
    if !credential.assigned {
        let message = format!(
            "credential `{}` is not assigned to project `{}`; assign it or name another",
            credential.name, desired.project
        );
        return refuse(ErrorKind::CredentialNotAssigned, message);
    }
    let Some(provider) = &credential.provider else {
        let message =
            format!("the cloud of credential `{}` no longer exists; name another", credential.name);
        return refuse(ErrorKind::CloudNotFound, message);
    };
    let Some(blueprint) = blueprint else { return Ok(credential) };
    if !blueprint.provider_kinds.contains(provider) {
        let message = format!(
            "blueprint `{}` is made for {}, credential `{}` is of provider `{provider}`; name one that fits",
            blueprint.slug,
            blueprint.provider_kinds.join(", "),
            credential.name,
        );
        return refuse(ErrorKind::ProviderKindMismatch, message);
    }
    // The shared ProviderConfig has the name of its provider and the Secret of one
    // credential.
    let shares = blueprint.engine == Engine::Crossplane && !blueprint.own_provider_config;
    let Some(conflict) = snapshot.conflict.as_ref().filter(|_| shares) else {
        return Ok(credential);
    };
    let message = format!(
        "project `{}` reaches provider `{provider}` with credential `{}` through the ProviderConfig that its resources share; name that credential or another project, or a version of the blueprint that is published with the string parameter `{}`",
        desired.project,
        conflict.credential,
        provider_config::PARAMETER
    );
    let details = json!({ "credential": conflict.credential, "resource_id": conflict.resource_id });
    Err(Refusal::new(ErrorKind::ProviderConfigConflict, message).at("credential").with(details))
}

fn placement<'a>(
    snapshot: &'a DeclareSnapshot,
    desired: Desired<'_>,
    blueprint: Option<&BlueprintVersion>,
) -> Result<&'a Placement, Refusal> {
    let Some(placement) = &snapshot.placement else {
        let message = format!(
            "project `{}` is not placed on a cluster; assign it to one first",
            desired.project
        );
        return Err(Refusal::new(ErrorKind::AssignmentNotFound, message).at("project"));
    };
    if let Some(blueprint) = blueprint {
        placement.serves(blueprint).map_err(|refusal| refusal.at("blueprint"))?;
    }
    Ok(placement)
}

fn credential_missing(snapshot: &DeclareSnapshot, desired: Desired<'_>) -> Refusal {
    let message = match (desired.credential, &snapshot.assigned_credentials[..]) {
        (Some(name), _) => format!("there is no credential `{name}`; name an existing one"),
        (None, []) => {
            format!("project `{}` has no credential assigned; assign one first", desired.project)
        }
        (None, several) => format!(
            "project `{}` has several credentials; name one of: {}",
            desired.project,
            several.join(", ")
        ),
    };
    Refusal::new(ErrorKind::CredentialNotFound, message).at("credential")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::broker::snapshot::CredentialConflict;
    use crate::fixtures::{mk_actor, mk_declaration, mk_declare_snapshot, mk_placement};

    fn on(engine: Engine) -> Placement {
        Placement { engine, ..mk_placement() }
    }

    #[test]
    fn an_accepted_declaration_writes_slot_attempt_event_and_audit() {
        let commit = declare(&mk_declare_snapshot(), &mk_declaration(), &mk_actor()).unwrap();
        assert!(matches!(
            commit.writes[..],
            [
                Write::Broker(BrokerWrite::ResourceInsert(_)),
                Write::Broker(BrokerWrite::AttemptInsert(_))
            ]
        ));
        assert_eq!(commit.events.len(), 1);
        assert_eq!(commit.events[0].event_type, event::REQUESTED);
        assert_eq!(commit.audit[0].verb, "resource.declare");
        let change = commit.audit[0].change.as_ref().unwrap();
        assert_eq!((change.from, change.to), (None, "Pending"));
        assert_eq!(change.subject.id, commit.events[0].subject.id, "of the attempt");
        assert_eq!(commit.wakes.len(), 1);
    }

    /// Invariant 5: every precondition is checked before anything is written.
    #[test]
    fn each_check_refuses_with_its_own_code_and_field() {
        let good = mk_declare_snapshot;
        let credential = good().credential.unwrap();
        let table = [
            (DeclareSnapshot { project: None, ..good() }, ErrorKind::ProjectNotFound, "project"),
            (
                DeclareSnapshot { blueprint: None, ..good() },
                ErrorKind::BlueprintNotFound,
                "blueprint",
            ),
            (
                DeclareSnapshot { blueprint_retired: true, ..good() },
                ErrorKind::BlueprintVersionRetired,
                "version",
            ),
            (
                DeclareSnapshot { credential: None, ..good() },
                ErrorKind::CredentialNotFound,
                "credential",
            ),
            (
                DeclareSnapshot {
                    credential: Some(CredentialView { assigned: false, ..credential.clone() }),
                    ..good()
                },
                ErrorKind::CredentialNotAssigned,
                "credential",
            ),
            (
                DeclareSnapshot {
                    credential: Some(CredentialView { provider: None, ..credential.clone() }),
                    ..good()
                },
                ErrorKind::CloudNotFound,
                "credential",
            ),
            (
                DeclareSnapshot {
                    credential: Some(CredentialView {
                        provider: Some("mars".to_owned()),
                        ..credential
                    }),
                    ..good()
                },
                ErrorKind::ProviderKindMismatch,
                "credential",
            ),
            (
                DeclareSnapshot { placement: None, ..good() },
                ErrorKind::AssignmentNotFound,
                "project",
            ),
            (
                DeclareSnapshot { placement: Some(on(Engine::Crossplane)), ..good() },
                ErrorKind::EngineNotServed,
                "blueprint",
            ),
            (
                DeclareSnapshot { holder: Some(Uuid::from_u128(9)), ..good() },
                ErrorKind::HandleTaken,
                "handle",
            ),
        ];
        for (snapshot, kind, field) in table {
            let refusal = declare(&snapshot, &mk_declaration(), &mk_actor()).unwrap_err();
            assert_eq!((refusal.kind, refusal.field.as_deref()), (kind, Some(field)), "{refusal}");
        }
    }

    #[test]
    fn a_second_credential_of_a_provider_is_refused_where_it_would_be_shared() {
        let conflict = CredentialConflict {
            resource_id: mk_declaration().resource_id,
            credential: "a".to_owned(),
        };
        let local = DeclareSnapshot { conflict: Some(conflict), ..mk_declare_snapshot() };
        assert!(declare(&local, &mk_declaration(), &mk_actor()).is_ok());
        let mut crossplane = local;
        crossplane.blueprint.as_mut().unwrap().engine = Engine::Crossplane;
        let refusal = declare(&crossplane, &mk_declaration(), &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::ProviderConfigConflict);
        assert_eq!(refusal.field.as_deref(), Some("credential"));
        crossplane.placement = Some(on(Engine::Crossplane));
        crossplane.blueprint.as_mut().unwrap().own_provider_config = true;
        assert!(declare(&crossplane, &mk_declaration(), &mk_actor()).is_ok(), "nothing is shared");
    }

    #[test]
    fn one_refusal_names_every_fault() {
        let declaration = Declaration {
            handle: "Not A Handle".to_owned(),
            labels: BTreeMap::from([("a b".to_owned(), String::new())]),
            parameters: serde_json::from_value(json!({"busy_seconds": "x", "speed": 1})).unwrap(),
            ..mk_declaration()
        };
        let snapshot = DeclareSnapshot { credential: None, ..mk_declare_snapshot() };
        let refusal = declare(&snapshot, &declaration, &mk_actor()).unwrap_err();
        let fields: Vec<_> = refusal.faults().filter_map(|fault| fault.field.as_deref()).collect();
        let expected =
            ["handle", "labels.a b", "credential", "parameters.busy_seconds", "parameters.speed"];
        assert_eq!(fields, expected);
    }

    /// To a key of another project, the project and all in it do not exist.
    #[test]
    fn nothing_of_an_unknown_project_is_told() {
        let snapshot = DeclareSnapshot {
            project: None,
            credential: None,
            placement: None,
            holder: Some(Uuid::from_u128(9)),
            ..mk_declare_snapshot()
        };
        let refusal = declare(&snapshot, &mk_declaration(), &mk_actor()).unwrap_err();
        assert_eq!((refusal.kind, refusal.others().len()), (ErrorKind::ProjectNotFound, 0));
    }

    #[test]
    fn wrong_parameters_are_refused_before_the_handle_is_looked_at() {
        let declaration = Declaration {
            parameters: serde_json::from_value(json!({"busy_seconds": "long"})).unwrap(),
            ..mk_declaration()
        };
        let refusal = declare(&mk_declare_snapshot(), &declaration, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::ParameterValuesInvalid);
    }
}
