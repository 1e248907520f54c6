//! Typed identities: one newtype per entity, so that a node id cannot be
//! passed where a resource id is meant. The nil UUID is never a valid id; it
//! is refused where an id is parsed and again where an aggregate is built.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::subject::{Subject, SubjectKind};

/// A text that is not a valid id of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a valid {kind} id: expected a UUID such as 0192f0c1-2b3c-7d4e-8f50-123456789abc"
)]
pub struct InvalidId {
    pub kind: &'static str,
    pub text: String,
}

macro_rules! typed_id {
    // A kind of subject.
    ($(#[$doc:meta])* $name:ident, SubjectKind::$kind:ident) => {
        typed_id!($(#[$doc])* $name, SubjectKind::$kind.as_str());

        impl From<$name> for Subject {
            fn from(id: $name) -> Self {
                Self::new(SubjectKind::$kind, id.0)
            }
        }
    };
    // An identity that is no subject.
    ($(#[$doc:meta])* $name:ident, $kind:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// What this identifies, as error texts and audit entries call it.
            pub const KIND: &'static str = $kind;

            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            pub const fn as_uuid(self) -> Uuid {
                self.0
            }

            /// The "not assigned" value, which no entity may carry.
            pub const fn is_nil(self) -> bool {
                self.0.is_nil()
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                // Only the canonical hyphenated form: one entity, one spelling.
                let parsed = (text.len() == 36).then(|| Uuid::try_parse(text).ok()).flatten();
                match parsed {
                    Some(uuid) if !uuid.is_nil() => Ok(Self(uuid)),
                    _ => Err(InvalidId { kind: Self::KIND, text: clip(text) }),
                }
            }
        }
    };
}

/// Limits how much of the input an error text repeats.
fn clip(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}

typed_id!(/// This installation of Slipway; stamped on every outside object.
    InstallationId, SubjectKind::Installation);
typed_id!(ProjectId, SubjectKind::Project);
typed_id!(CloudId, SubjectKind::Cloud);
typed_id!(CloudCredentialId, SubjectKind::Credential);
typed_id!(ClusterId, SubjectKind::Cluster);
typed_id!(/// The provisioned resources of one cluster. Each partition is claimed by
    /// itself, so that a slow cluster takes nobody's slots and a process never
    /// claims what it cannot serve.
    Partition, "partition");

impl From<ClusterId> for Partition {
    fn from(cluster: ClusterId) -> Self {
        Self::new(cluster.as_uuid())
    }
}

typed_id!(BlueprintId, SubjectKind::Blueprint);
typed_id!(BlueprintVersionId, SubjectKind::BlueprintVersion);
typed_id!(LabelDefinitionId, SubjectKind::Label);
typed_id!(/// The named slot that an operator declared.
    ResourceId, SubjectKind::Resource);
typed_id!(/// One filling of a slot (one attempt).
    ProvisionedResourceId, SubjectKind::ProvisionedResource);
typed_id!(BootstrapTokenId, SubjectKind::BootstrapToken);
typed_id!(NodeId, SubjectKind::Node);
typed_id!(/// One request to drain one node.
    DrainId, "drain");
typed_id!(DeletionId, SubjectKind::Deletion);
typed_id!(/// What a deletion would take away, before anybody asks for it.
    PlanId, "deletion_plan");
typed_id!(/// One change brought to many members.
    RolloutId, SubjectKind::Rollout);
typed_id!(/// A program that submits stacks.
    GeneratorId, SubjectKind::Generator);
typed_id!(/// What a generator wants on clusters.
    StackId, SubjectKind::Stack);
typed_id!(TemplateId, SubjectKind::Template);
typed_id!(/// The program that brings stacks to a cluster.
    AgentId, SubjectKind::Agent);
typed_id!(/// One immutable content of a stack.
    DeploymentObjectId, "deployment_object");
typed_id!(/// Where tenants live, and how they are made.
    TenantProfileId, SubjectKind::TenantProfile);
typed_id!(/// One database for one customer.
    TenantId, SubjectKind::Tenant);
typed_id!(/// One try to make a tenant.
    TenantJobId, "tenant_job");
typed_id!(/// Servers that are declared and taken down together.
    WorkspaceId, SubjectKind::Workspace);
typed_id!(/// Servers of a workspace that are alike.
    GroupId, "group");
typed_id!(EventId, "event");
typed_id!(AuditEntryId, "audit_entry");
typed_id!(LeakRecordId, SubjectKind::LeakRecord);
typed_id!(ApiKeyId, SubjectKind::ApiKey);
typed_id!(/// One reader of all events, with a durable cursor.
    SubscriptionId, SubjectKind::Subscription);

/// Counts the writes of a row: +1 with each. A write names the revision it read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub i64);

impl Revision {
    /// The revision of a row that was just inserted.
    pub const FIRST: Self = Self(1);

    /// The revision that the next write gives the row.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Counts the claims of a row by a loop: +1 with each. Every write of a loop
/// names the one it holds, so a worker that lost its claim cannot write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClaimToken(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_round_trips_through_its_canonical_text() {
        let id = ResourceId::new(Uuid::from_u128(0x0192_f0c1_2b3c_7d4e_8f50_1234_5678_9abc));
        assert_eq!(id.to_string().parse::<ResourceId>(), Ok(id));
    }

    #[test]
    fn what_is_not_a_canonical_uuid_is_refused_by_kind() {
        for text in
            ["", "x", "00000000-0000-0000-0000-000000000000", "0192f0c12b3c7d4e8f50123456789abc"]
        {
            let error = text.parse::<NodeId>().unwrap_err();
            assert_eq!(error.kind, "node");
            assert!(error.to_string().contains("valid node id"), "{error}");
        }
    }
}
