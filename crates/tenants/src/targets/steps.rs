//! The five callbacks of an executor that work on a target.

use std::sync::Arc;

use super::names::TenantNames;
use super::settings::Settings;
use super::target::{Fence, Target, Work};
use crate::{Job, Step, StepContext, StepError, Steps};

/// Where the tenant of a job lives, and which piece of work on it the job is.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub target: Arc<dyn Target>,
    pub settings: Arc<Settings>,
    pub names: TenantNames,
    /// Higher than that of every earlier piece of work on this tenant.
    pub work: i64,
}

/// The five callbacks. `find` says where the tenant of a job lives.
#[must_use]
pub fn steps<F>(find: impl Fn(Job) -> F + Send + Sync + 'static) -> Steps
where
    F: Future<Output = Result<Assignment, StepError>> + Send + 'static,
{
    let find = Arc::new(find);
    Step::ALL.into_iter().fold(Steps::new(), |steps, step| {
        let find = Arc::clone(&find);
        steps.with(step, move |context| {
            let found = find(context.job().clone());
            async move { run(step, &context, &found.await?).await }
        })
    })
}

async fn run(step: Step, context: &StepContext, found: &Assignment) -> Result<(), StepError> {
    built_in(step, context, found).await
}

async fn built_in(step: Step, context: &StepContext, found: &Assignment) -> Result<(), StepError> {
    let Assignment { target, names, work, .. } = found;
    let fence = Fence { work: *work, token: context.claim_token() };
    let work = Work { names, fence, journal: context };
    match step {
        Step::CreateSchema => target.create_schema(&work).await,
        Step::CreateRole => target.create_role(&work).await,
        Step::Migrate => {
            let migrated = target.migrate(&work).await?;
            if let Some(version) = migrated.version {
                context.set("version", version)?;
            }
            Ok(())
        }
        Step::Seed => target.seed(&work).await,
        Step::Cleanup => {
            for object in context.made() {
                target.remove(&work, &object).await?;
            }
            Ok(())
        }
    }
}
