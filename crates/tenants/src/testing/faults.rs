//! Faults in steps, on purpose: to find out whether steps of one's own bear them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{AnyStore, executor, mk_new, quick};
use crate::{Error, Options, Outcome, Step, StepError, Steps};

/// What happens in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails for good before it did anything.
    Before,
    /// It does everything, and then fails for good.
    After,
    /// It does everything, and then fails by a transient error, the first time only: it is
    /// called again, as after a crash before its edge was written.
    OnceAfter,
    /// It does everything, and then panics.
    Panic,
}

impl Fault {
    pub const ALL: [Self; 4] = [Self::Before, Self::After, Self::OnceAfter, Self::Panic];

    /// Whether a job still becomes ready.
    #[must_use]
    pub const fn is_survived(self) -> bool {
        matches!(self, Self::OnceAfter)
    }
}

/// The calls of steps, in their order.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<Mutex<Vec<(String, Step)>>>);

impl Calls {
    fn note(&self, job: &str, step: Step) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((job.to_owned(), step));
    }

    /// The calls for one job.
    #[must_use]
    pub fn of(&self, job: &str) -> Vec<Step> {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().filter(|(of, _)| of == job).map(|(_, step)| *step).collect()
    }
}

/// Steps that are noted when they are called.
#[must_use]
pub fn recorded(steps: &Steps, calls: &Calls) -> Steps {
    wrap(steps, |step, callback| {
        let calls = calls.clone();
        Box::new(move |context| {
            calls.note(&context.job().id, step);
            callback(context)
        })
    })
}

/// Steps of which each runs twice in a row whenever it is called.
#[must_use]
pub fn twice(steps: &Steps) -> Steps {
    wrap(steps, |_, callback| {
        Box::new(move |context| {
            let callback = Arc::clone(&callback);
            Box::pin(async move {
                callback(context.clone()).await?;
                callback(context).await
            })
        })
    })
}

/// Steps of which one has a fault.
#[must_use]
pub fn inject(steps: &Steps, at: Step, fault: Fault) -> Steps {
    wrap(steps, |step, callback| {
        if step != at {
            return Box::new(move |context| callback(context));
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        Box::new(move |context| {
            let (callback, seen) = (Arc::clone(&callback), Arc::clone(&seen));
            Box::pin(async move {
                let injected = format!("injected: {fault:?} {at}");
                if fault == Fault::Before {
                    return Err(StepError::permanent(injected));
                }
                let id = context.job().id.clone();
                callback(context).await?;
                match fault {
                    Fault::After => Err(StepError::permanent(injected)),
                    Fault::Panic => panic!("{injected}"),
                    Fault::Before | Fault::OnceAfter => {
                        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                        if seen.contains(&id) {
                            return Ok(());
                        }
                        seen.push(id);
                        Err(StepError::transient(injected))
                    }
                }
            })
        })
    })
}

type Wrapped = Box<
    dyn Fn(
            crate::StepContext,
        ) -> std::pin::Pin<Box<dyn Future<Output = Result<(), StepError>> + Send>>
        + Send
        + Sync,
>;

fn wrap(steps: &Steps, wrapped: impl Fn(Step, crate::Callback) -> Wrapped) -> Steps {
    Step::ALL.into_iter().fold(Steps::new(), |all, step| match steps.get(step) {
        Some(callback) => all.with(step, wrapped(step, callback)),
        None => all,
    })
}

/// Runs a job with each fault in each step, then one of which every step runs twice, and
/// asks `check` about the tenant of each: whether it is as a ready one should be, or
/// nothing of it is left. The error names the fault and what `check` said.
pub async fn survives_every_fault<E: fmt::Display>(
    store: &AnyStore,
    steps: &Steps,
    mut check: impl AsyncFnMut(&str, bool) -> Result<(), E>,
) -> Result<(), String> {
    let forward = &Step::ALL[..4];
    let mut runs: Vec<(String, Steps, bool)> =
        vec![("each step twice".to_owned(), twice(steps), true)];
    for step in forward {
        for fault in Fault::ALL {
            let name = format!("{fault:?} in {step}");
            runs.push((name, inject(steps, *step, fault), fault.is_survived()));
        }
        let failing = inject(&inject(steps, *step, Fault::After), Step::Cleanup, Fault::OnceAfter);
        runs.push((format!("cleanup twice after {step}"), failing, false));
    }
    for (name, steps, ready) in runs {
        let job = mk_new("fault");
        store.upsert(&job).await.map_err(|error| format!("{name}: {error}"))?;
        let options = Options { step_attempts: 3, ..quick() };
        let ended = executor(store, steps, options).run(&job.id).await;
        let expected = match &ended {
            Ok(Outcome::Ready) => ready,
            Err(Error::JobFailed { .. }) => !ready,
            _ => false,
        };
        if !expected {
            return Err(format!("{name}: the run ended with {ended:?}"));
        }
        check(&job.tenant_id, ready).await.map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}
