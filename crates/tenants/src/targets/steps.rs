//! The five callbacks of an executor that work on a target.

use std::sync::Arc;
use std::time::Duration;

use super::command::{self, Printed};
use super::names::TenantNames;
use super::settings::{CommandStep, Settings};
use super::target::{Fence, LostWork, Target, Work};
use crate::{Job, Step, StepContext, StepError, Steps};

/// Where the tenant of a job lives, and which piece of work on it the job is.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub target: Arc<dyn Target>,
    pub settings: Arc<Settings>,
    pub names: TenantNames,
    /// Higher than that of every earlier piece of work on this tenant.
    pub work: i64,
    pub lost: Option<LostWork>,
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

/// A built-in step with the commands before and after it.
async fn run(step: Step, context: &StepContext, found: &Assignment) -> Result<(), StepError> {
    let commands = |when: When| {
        let of_step = move |command: &&CommandStep| when.of(command) == Some(step);
        found.settings.steps.iter().filter(of_step)
    };
    for command in commands(When::Before) {
        run_command(command, When::Before, context, found).await?;
    }
    built_in(step, context, found).await?;
    for command in commands(When::After) {
        run_command(command, When::After, context, found).await?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum When {
    Before,
    After,
}

impl When {
    const fn of(self, command: &CommandStep) -> Option<Step> {
        match self {
            Self::Before => command.before,
            Self::After => command.after,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

async fn run_command(
    command: &CommandStep,
    when: When,
    context: &StepContext,
    found: &Assignment,
) -> Result<(), StepError> {
    let input = serde_json::json!({
        "tenant": context.job().tenant_id,
        "job": context.job().id,
        "name": command.name,
        "step": context.step().as_str(),
        "when": when.as_str(),
        "engine": found.settings.engine,
        "schema": found.names.schema(),
    });
    let deadline = Duration::from_secs(command.deadline_seconds.into());
    let what = format!("step {}", command.name);
    let input = input.to_string();
    command::run(&what, &command.command, input.as_bytes(), deadline, Printed::Shown).await
}

async fn built_in(step: Step, context: &StepContext, found: &Assignment) -> Result<(), StepError> {
    let Assignment { target, names, work, lost, .. } = found;
    let fence = Fence { work: *work, token: context.claim_token() };
    let work = Work { names, fence, lost: *lost, journal: context };
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
