//! Wakes the attempts that an engine saw change, so that the resource loop
//! observes them at once instead of at the next sweep. It claims nothing
//! itself. Attempts that change all the time are woken less often than they
//! change (`damper.rs`).
//!
//! *Guarantees:* every attempt that an engine reported is made due, with
//! retries, for as long as this process lives. *Assumption:* the boot sweep of
//! the next process covers what is lost with this one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use slipway_app::Context;
use slipway_app::ports::{Entropy, Substrate};
use slipway_core::ids::ProvisionedResourceId;
use slipway_durable::Backoff;
use tokio::time::Instant;

use crate::damper::Damper;
use crate::driver::{Failure, Shutdown, failure};

/// How long to collect further changes after the first one, so that a burst
/// becomes one statement. Small compared with the duration of a tick, large
/// compared with the time between two events of one watch.
const GATHER: Duration = Duration::from_millis(5);

/// Attempts in one statement, at most; a larger burst takes several.
const BATCH: usize = 500;

/// The pause after a failed write to the database.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(50), max: Duration::from_secs(5) };

/// Runs until shutdown.
pub async fn watch_engine(context: Context, substrate: Arc<dyn Substrate>, shutdown: Shutdown) {
    let mut stopping = shutdown;
    let make_due = |ids: Vec<ProvisionedResourceId>| {
        let (store, wakes) = (context.stores.clone(), context.wakes.clone());
        async move {
            store.broker.attempt_wake(&ids).await.map_err(failure)?;
            wakes.wake();
            Ok(())
        }
    };
    tokio::select! {
        never = wake_for_ever(substrate.as_ref(), context.entropy.as_ref(), make_due) => never,
        () = stopping.requested() => {}
    }
}

/// `make_due` writes all given ids, or none.
async fn wake_for_ever<T, Written: Future<Output = Result<(), Failure>>>(
    substrate: &dyn Substrate,
    entropy: &dyn Entropy,
    mut make_due: impl FnMut(Vec<ProvisionedResourceId>) -> Written,
) -> T {
    let mut changed = BTreeSet::new();
    let mut damper = Damper::default();
    loop {
        let held_until = damper.next();
        let held = async {
            match held_until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        // Cancelling the wait loses nothing: an engine removes changes from its
        // queue only when it returns them.
        tokio::select! {
            news = substrate.changed() => changed.extend(news),
            () = held => {}
        }
        gather(substrate, &mut changed).await;
        let now = Instant::now();
        changed.retain(|id| damper.passes(*id, now));
        changed.extend(damper.due(now));
        let mut failures = 0;
        while !changed.is_empty() {
            let some: Vec<_> = changed.iter().copied().take(BATCH).collect();
            match make_due(some.clone()).await {
                Ok(()) => {
                    failures = 0;
                    changed.retain(|id| some.binary_search(id).is_err());
                }
                Err(Failure { message, is_logged }) => {
                    failures += 1;
                    let waiting = changed.len();
                    if !is_logged {
                        tracing::warn!(
                            error = message,
                            waiting,
                            "changed objects cannot wake their resources; trying again"
                        );
                    }
                    tokio::time::sleep(BACKOFF.delay(failures, entropy.jitter())).await;
                }
            }
        }
    }
}

/// Collects further changes for [`GATHER`].
async fn gather(substrate: &dyn Substrate, changed: &mut BTreeSet<ProvisionedResourceId>) {
    let until = Instant::now() + GATHER;
    while let Ok(more) = tokio::time::timeout_at(until, substrate.changed()).await {
        changed.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use slipway_app::ports::substrate::{Address, Error};
    use slipway_core::broker::observation::CompositeReport;
    use slipway_core::catalog::blueprint_version::Engine;
    use slipway_render::RenderedComposite;
    use tokio::sync::mpsc;
    use uuid::Uuid;

    use super::*;

    type Ids = Vec<ProvisionedResourceId>;

    /// Reports the changes that the test sends.
    #[derive(Debug)]
    struct Talking(tokio::sync::Mutex<mpsc::UnboundedReceiver<Ids>>);

    #[async_trait]
    impl Substrate for Talking {
        fn engine(&self) -> Engine {
            Engine::Crossplane
        }

        async fn identity(&self) -> Result<String, Error> {
            Ok(String::new())
        }

        async fn observe(&self, _: &[Address]) -> Vec<CompositeReport> {
            Vec::new()
        }

        async fn apply(&self, _: &RenderedComposite) -> Result<CompositeReport, Error> {
            Err(Error::Failed("not asked for".to_owned()))
        }

        async fn delete(&self, _: &Address, _: &str) -> Result<(), Error> {
            Ok(())
        }

        async fn changed(&self) -> Ids {
            match self.0.lock().await.recv().await {
                Some(ids) => ids,
                None => std::future::pending().await,
            }
        }
    }

    #[derive(Debug)]
    struct Still;

    impl Entropy for Still {
        fn uuid(&self) -> Uuid {
            Uuid::nil()
        }

        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(0);
        }
    }

    fn ids(numbers: std::ops::Range<u128>) -> Ids {
        numbers.map(|number| ProvisionedResourceId::new(Uuid::from_u128(number))).collect()
    }

    /// The writes that result from changes reported at this interval.
    async fn written_apart(said: &[Ids], apart: Duration) -> Vec<Ids> {
        let (say, listen) = mpsc::unbounded_channel();
        let said = said.to_vec();
        tokio::spawn(async move {
            for ids in said {
                say.send(ids).unwrap();
                tokio::time::sleep(apart).await;
            }
            // Keeps the channel open, without further changes.
            std::future::pending::<()>().await;
        });
        listened(listen, 0).await
    }

    /// The writes, in order, while the first few fail.
    async fn written(said: &[Ids], refused: usize) -> Vec<Ids> {
        let (say, listen) = mpsc::unbounded_channel();
        for ids in said {
            say.send(ids.clone()).unwrap();
        }
        listened(listen, refused).await
    }

    async fn listened(listen: mpsc::UnboundedReceiver<Ids>, mut refused: usize) -> Vec<Ids> {
        let engine = Talking(tokio::sync::Mutex::new(listen));
        let written = Mutex::new(Vec::new());
        let make_due = |ids: Ids| {
            let refuse = refused > 0;
            if refuse {
                refused -= 1;
            } else {
                written.lock().unwrap().push(ids);
            }
            std::future::ready(if refuse { Err("it is away".to_owned().into()) } else { Ok(()) })
        };
        // The paused clock of the runtime advances only when nothing else can run.
        let watching = wake_for_ever::<(), _>(&engine, &Still, make_due);
        tokio::time::timeout(Duration::from_secs(60), watching).await.unwrap_err();
        written.into_inner().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_one_write_and_a_large_one_is_several() {
        assert_eq!(written(&[ids(0..2), ids(1..3)], 0).await, [ids(0..3)]);
        let many = written(&[ids(0..1_200)], 0).await;
        assert_eq!(many.iter().map(Vec::len).collect::<Vec<_>>(), [500, 500, 200]);
        assert_eq!(many.concat(), ids(0..1_200));
    }

    #[tokio::test(start_paused = true)]
    async fn what_flaps_is_written_less_often_and_at_last() {
        // The runtime's clock is paused, so a minute passes at once.
        let flaps: Vec<_> = (0..100).map(|_| ids(0..1)).collect();
        let written = written_apart(&flaps, Duration::from_millis(50)).await;
        // Ten at once, then one a second for five seconds, and the last one.
        assert!((14..=16).contains(&written.len()), "{}", written.len());
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_written_is_kept_and_written_later() {
        assert_eq!(written(&[ids(0..2)], 3).await, [ids(0..2)]);
    }
}
