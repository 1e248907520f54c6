//! The five callbacks, and how their errors are classified.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::context::StepContext;
use crate::{Error, Step};

/// A callback: `|context| async move { … Ok(()) }`.
///
/// It may run more than once: after a crash, a lost lease or a transient error it is called
/// again, with the metadata of its last checkpoint. So each effect is made so that making it
/// twice is making it once.
pub type Callback = Arc<
    dyn Fn(StepContext) -> Pin<Box<dyn Future<Output = Result<(), StepError>> + Send>>
        + Send
        + Sync,
>;

/// Why a step failed, and what follows from it.
#[derive(Clone, PartialEq, Eq)]
pub struct StepError {
    pub message: String,
    pub class: FailureClass,
}

/// What follows when a step failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// The job is parked and the step tried again, a bounded number of times.
    Transient,
    /// The job goes to cleanup.
    Permanent,
    /// Neither trying again nor cleaning up is safe: the job keeps its state, and waits until a
    /// person resumes or cancels it.
    Waiting,
}

impl StepError {
    /// See [`FailureClass::Transient`].
    pub fn transient(error: impl fmt::Display) -> Self {
        Self { message: error.to_string(), class: FailureClass::Transient }
    }

    /// See [`FailureClass::Permanent`].
    pub fn permanent(error: impl fmt::Display) -> Self {
        Self { message: error.to_string(), class: FailureClass::Permanent }
    }

    /// See [`FailureClass::Waiting`].
    pub fn waiting(error: impl fmt::Display) -> Self {
        Self { message: error.to_string(), class: FailureClass::Waiting }
    }

    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.class == FailureClass::Transient
    }

    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.class == FailureClass::Waiting
    }
}

/// An error that nobody classified is permanent: what is repeated blindly may do harm.
impl<E: std::error::Error> From<E> for StepError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::permanent(message)
    }
}

impl fmt::Debug for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            FailureClass::Transient => "transient",
            FailureClass::Permanent => "permanent",
            FailureClass::Waiting => "waiting",
        };
        write!(f, "{class}: {}", self.message)
    }
}

/// The steps of a job. Each has to be given.
#[derive(Clone, Default)]
pub struct Steps([Option<Callback>; 5]);

impl Steps {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves `pending`.
    #[must_use]
    pub fn create_schema<F>(self, run: impl Fn(StepContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), StepError>> + Send + 'static,
    {
        self.with(Step::CreateSchema, run)
    }

    /// Leaves `schema_created`.
    #[must_use]
    pub fn create_role<F>(self, run: impl Fn(StepContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), StepError>> + Send + 'static,
    {
        self.with(Step::CreateRole, run)
    }

    /// Leaves `role_created`.
    #[must_use]
    pub fn migrate<F>(self, run: impl Fn(StepContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), StepError>> + Send + 'static,
    {
        self.with(Step::Migrate, run)
    }

    /// Leaves `migrated`. After it the job is `seeded` and `ready` in one commit.
    #[must_use]
    pub fn seed<F>(self, run: impl Fn(StepContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), StepError>> + Send + 'static,
    {
        self.with(Step::Seed, run)
    }

    /// Removes what the job made, [`StepContext::made`], the newest first, and nothing else.
    /// Success says that all of it is gone.
    #[must_use]
    pub fn cleanup<F>(self, run: impl Fn(StepContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), StepError>> + Send + 'static,
    {
        self.with(Step::Cleanup, run)
    }

    /// Any of the five.
    #[must_use]
    pub fn with<F>(
        mut self,
        step: Step,
        run: impl Fn(StepContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), StepError>> + Send + 'static,
    {
        self.0[step.index()] = Some(Arc::new(move |context| Box::pin(run(context))));
        self
    }

    /// The callback of a step, if it was given.
    #[must_use]
    pub fn get(&self, step: Step) -> Option<Callback> {
        self.0[step.index()].clone()
    }

    /// All of them, or the name of the first that is missing.
    pub(crate) fn complete(self) -> Result<[Callback; 5], Error> {
        let missing = |step| match step {
            Step::CreateSchema => "steps.create_schema",
            Step::CreateRole => "steps.create_role",
            Step::Migrate => "steps.migrate",
            Step::Seed => "steps.seed",
            Step::Cleanup => "steps.cleanup",
        };
        let mut callbacks = Vec::new();
        for (step, callback) in Step::ALL.into_iter().zip(self.0) {
            callbacks.push(callback.ok_or(Error::Missing(missing(step)))?);
        }
        callbacks.try_into().map_err(|_| Error::Missing("steps"))
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = Step::ALL.into_iter().filter(|step| self.0[step.index()].is_some());
        f.debug_set().entries(given.map(Step::as_str)).finish()
    }
}

/// Asked immediately before each step but cleanup, so that a pause never strands what a
/// job made.
#[async_trait::async_trait]
pub trait Pause: fmt::Debug + Send + Sync {
    /// A permit that lasts as long as the step, or the reason why it may not start. An
    /// answer that cannot be had is a reason, too: a pause fails closed.
    async fn permit(&self, job: &crate::Job, step: Step) -> Result<Permit, String>;
}

/// Kept while a step runs, and dropped when it ends, so that whoever pauses can wait until
/// nothing is under way.
pub struct Permit(#[expect(dead_code, reason = "it is kept for its drop")] Box<dyn Send>);

impl Permit {
    /// A permit that nobody counts.
    #[must_use]
    pub fn new() -> Self {
        Self::with(())
    }

    pub fn with(guard: impl Send + 'static) -> Self {
        Self(Box::new(guard))
    }
}

impl Default for Permit {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}
