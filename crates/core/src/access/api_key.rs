//! API keys as stored: who holds one, what it permits, and the hashes that
//! recognise it. [`crate::access::key_text`] reads and writes the text of a key.

use std::time::Duration;

use crate::access::key_text::ApiKeyText;
use crate::access::role::Role;
use crate::closed_set::closed_set;
use crate::ids::{AgentId, ApiKeyId, GeneratorId, ProjectId, Revision};
use crate::kind::kind;
use crate::nodes::token::SecretHash;
use crate::time::Timestamp;

/// The longest time that a replaced secret stays valid. A week covers a
/// rotation by hand on every machine that uses the key.
pub const OVERLAP_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);

/// How long a key that expires may live: at least a minute, so that it can be
/// used at all, and at most ten years. A key meant for ever has no expiry.
pub const LIFETIME_MIN: Duration = Duration::from_secs(60);
pub const LIFETIME_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// Whom a key speaks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Principal {
    /// Whoever holds it, with the rights of its role.
    #[default]
    Holder,
    /// An agent of Fleet: what the agent itself may do, and nothing else.
    Agent(AgentId),
    /// A generator of Fleet, with what it owns.
    Generator(GeneratorId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: ApiKeyId,
    /// Unique, revoked keys included: the audit names actors by it.
    pub name: String,
    /// The person or program that holds it.
    pub owner: String,
    pub role: Role,
    /// The only project that the key reaches; `None` means all of them.
    pub project_id: Option<ProjectId>,
    /// When that project was deleted. The key reaches nothing while it is.
    pub project_deleted_at: Option<Timestamp>,
    /// For other than its holder, the role counts for nothing.
    pub principal: Principal,
    /// When the agent or the generator was deleted. The key is refused while it is.
    pub principal_deleted_at: Option<Timestamp>,
    pub short: String,
    pub hash: SecretHash,
    /// The secret before the last rotation, while it is still valid.
    pub previous: Option<Previous>,
    pub created_by: Option<String>,
    pub created_at: Timestamp,
    pub rotated_at: Option<Timestamp>,
    /// Who has seen its present text since.
    pub rotated_by: Option<String>,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub revision: Revision,
}

kind!(ApiKey, ApiKeyId, KeyNotFound);

closed_set!(
    /// Whether a key can be used, and if not why.
    KeyState {
        Usable => "usable",
        Expired => "expired",
        Revoked => "revoked",
        ProjectDeleted => "project_deleted",
        /// Its agent or generator is deleted.
        PrincipalDeleted => "principal_deleted",
    }
);

/// A secret that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previous {
    pub short: String,
    pub hash: SecretHash,
    pub until: Timestamp,
}

impl ApiKey {
    /// An admin key for the whole installation, as the binary installs it at
    /// startup, without the time of its creation.
    pub(super) fn of_installation(
        id: ApiKeyId,
        name: impl Into<String>,
        short: impl Into<String>,
        hash: SecretHash,
    ) -> Self {
        let name = name.into();
        Self {
            id,
            owner: name.clone(),
            name,
            role: Role::Admin,
            project_id: None,
            project_deleted_at: None,
            principal: Principal::Holder,
            principal_deleted_at: None,
            short: short.into(),
            hash,
            previous: None,
            created_by: None,
            created_at: Timestamp::ZERO,
            rotated_at: None,
            rotated_by: None,
            expires_at: None,
            revoked_at: None,
            revision: Revision(1),
        }
    }

    /// Whether the key can be used, and why not. Final reasons come first.
    pub fn state(&self, now: Timestamp) -> KeyState {
        if self.revoked_at.is_some() {
            KeyState::Revoked
        } else if self.expires_at.is_some_and(|at| now >= at) {
            KeyState::Expired
        } else if self.project_deleted_at.is_some() {
            KeyState::ProjectDeleted
        } else if self.principal_deleted_at.is_some() {
            KeyState::PrincipalDeleted
        } else {
            KeyState::Usable
        }
    }

    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.state(now) == KeyState::Usable
    }

    /// Whether this text is a valid secret of the key now.
    pub fn accepts(&self, text: &ApiKeyText, now: Timestamp) -> bool {
        let current = self.short == text.short && self.hash == text.hash;
        let previous = self.previous.as_ref().is_some_and(|previous| {
            previous.short == text.short && previous.hash == text.hash && now < previous.until
        });
        self.is_usable(now) && (current || previous)
    }

    /// Whether it can administer the whole installation.
    pub fn keeps_administration(&self, now: Timestamp) -> bool {
        self.role == Role::Admin
            && self.principal == Principal::Holder
            && self.project_id.is_none()
            && self.is_usable(now)
    }
}
