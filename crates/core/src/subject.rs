//! Subjects: kind and id of anything that an event, an audit entry, a line of
//! history, a blocker, a leak, a wake or a claim is about. The spine (commit,
//! event, audit) knows subjects and no aggregate, so a new kind of thing
//! announces, wakes and is claimed by having a variant here.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::closed_set::closed_set;
use crate::ids::ProvisionedResourceId;

closed_set!(
    /// Every kind of thing that has an identity of its own.
    SubjectKind {
        Installation => "installation",
        Project => "project",
        Cloud => "cloud",
        Credential => "credential",
        Cluster => "cluster",
        Blueprint => "blueprint",
        BlueprintVersion => "blueprint_version",
        Label => "label",
        Resource => "resource",
        ProvisionedResource => "provisioned_resource",
        BootstrapToken => "bootstrap_token",
        Node => "node",
        Deletion => "deletion",
        LeakRecord => "leak_record",
        ApiKey => "api_key",
        Subscription => "subscription",
        Rollout => "rollout",
        Generator => "generator",
        Stack => "stack",
        Template => "template",
        Agent => "agent",
        TenantProfile => "tenant_profile",
        Tenant => "tenant",
        Workspace => "workspace",
    }
);

/// One thing. Every typed id of [`crate::ids`] whose kind is in the set
/// converts into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Subject {
    pub kind: SubjectKind,
    pub id: Uuid,
}

impl Subject {
    pub const fn new(kind: SubjectKind, id: Uuid) -> Self {
        Self { kind, id }
    }
}

/// The kinds that a loop claims: their tables have the columns of `durable`.
/// The store has one table for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoopKind {
    ProvisionedResource,
}

/// A subject that a loop serves, so that it can be woken, claimed and released.
/// Only an id of such a kind converts into it: a commit cannot wake a thing
/// that nobody would ever claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claimable {
    kind: LoopKind,
    id: Uuid,
}

impl Claimable {
    pub const fn kind(self) -> LoopKind {
        self.kind
    }

    pub const fn id(self) -> Uuid {
        self.id
    }
}

impl From<ProvisionedResourceId> for Claimable {
    fn from(id: ProvisionedResourceId) -> Self {
        Self { kind: LoopKind::ProvisionedResource, id: id.as_uuid() }
    }
}

impl From<Claimable> for Subject {
    fn from(claimable: Claimable) -> Self {
        let kind = match claimable.kind {
            LoopKind::ProvisionedResource => SubjectKind::ProvisionedResource,
        };
        Self { kind, id: claimable.id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimable_subject_keeps_its_kind_and_id() {
        let id = ProvisionedResourceId::new(Uuid::from_u128(7));
        let (claimable, subject) = (Claimable::from(id), Subject::from(id));
        assert_eq!(Subject::from(claimable), subject);
        assert_eq!(claimable.kind(), LoopKind::ProvisionedResource);
        assert_eq!(subject.kind.as_str(), ProvisionedResourceId::KIND);
    }
}
