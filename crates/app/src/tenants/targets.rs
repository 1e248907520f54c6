//! The port to where tenants live. The binary implements it over the library.

use std::fmt;

use async_trait::async_trait;
use serde_json::Value;
use slipway_core::error::Refusal;
use slipway_core::tenants::profile::TenantProfile;
use slipway_core::tenants::task::Task;
use slipway_core::tenants::tenant::Tenant;

/// Why a target did not do what it was asked for. It has no known secrets, but comes from
/// outside: it is shown, and no audit entry has it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TargetError {
    pub message: String,
    pub class: TargetErrorClass,
}

/// What follows when a target did not do what it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetErrorClass {
    /// The same may succeed later.
    Transient,
    /// The same would fail again.
    Permanent,
    /// Trying again is not safe before a person has looked.
    Waiting,
}

#[async_trait]
pub trait TenantTargets: fmt::Debug + Send + Sync {
    /// Refuses settings that cannot work, every fault with its field. Reads nothing.
    fn check(&self, settings: &Value) -> Result<(), Refusal>;

    /// Refuses a name that no tenant of this profile can have.
    fn check_name(&self, settings: &Value, target_name: &str) -> Result<(), Refusal>;

    /// Carries out a task, under the number of work that the tenant has. Answers the last
    /// migration that is applied, if the task is about migrations.
    async fn run(
        &self,
        profile: &TenantProfile,
        tenant: &Tenant,
        task: Task,
    ) -> Result<Option<String>, TargetError>;

    /// A copy of the tenant's data as it is now.
    async fn export(
        &self,
        profile: &TenantProfile,
        tenant: &Tenant,
    ) -> Result<Box<dyn TenantExport>, TargetError>;

    /// How the target differs from what the profile says.
    async fn drift(
        &self,
        profile: &TenantProfile,
        tenant: &Tenant,
        deep: bool,
    ) -> Result<Value, TargetError>;
}

/// A copy that is being read. Dropped before its end it leaves nothing behind.
#[async_trait]
pub trait TenantExport: fmt::Debug + Send {
    /// The next piece, `None` at the end of a complete copy.
    async fn piece(&mut self) -> Result<Option<Vec<u8>>, TargetError>;
}

/// Has no targets, for tests that need none: every task succeeds.
#[derive(Debug, Clone, Copy)]
pub struct NoTargets;

#[async_trait]
impl TenantTargets for NoTargets {
    fn check(&self, _: &Value) -> Result<(), Refusal> {
        Ok(())
    }

    fn check_name(&self, _: &Value, _: &str) -> Result<(), Refusal> {
        Ok(())
    }

    async fn run(
        &self,
        _: &TenantProfile,
        _: &Tenant,
        task: Task,
    ) -> Result<Option<String>, TargetError> {
        Ok((task == Task::Migrate).then(|| "1".to_owned()))
    }

    async fn export(
        &self,
        _: &TenantProfile,
        tenant: &Tenant,
    ) -> Result<Box<dyn TenantExport>, TargetError> {
        Ok(Box::new(OnePiece(Some(tenant.name.to_string().into_bytes()))))
    }

    async fn drift(&self, _: &TenantProfile, _: &Tenant, _: bool) -> Result<Value, TargetError> {
        Ok(Value::Array(Vec::new()))
    }
}

/// The copy of a tenant of [`NoTargets`]: its name.
#[derive(Debug)]
struct OnePiece(Option<Vec<u8>>);

#[async_trait]
impl TenantExport for OnePiece {
    async fn piece(&mut self) -> Result<Option<Vec<u8>>, TargetError> {
        Ok(self.0.take())
    }
}
