//! Waits for a database that goes away while the control plane starts.

use std::time::{Duration, Instant};

use crate::config::Config;
use crate::error::Error;

/// Between two tries of a step.
const PAUSE: Duration = Duration::from_millis(250);

/// How long a step of the start waits for the database: `--database-timeout`.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatabaseWait {
    limit: Duration,
}

impl DatabaseWait {
    pub(super) const fn of(config: &Config) -> Self {
        Self { limit: config.database_timeout }
    }

    /// Runs a step, and again while the database is away, until the limit has
    /// passed since its first failure. The commit of a step may have succeeded
    /// although its answer was lost, so a step must be safe to repeat.
    pub(super) async fn run<T>(self, step: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
        let mut failed_at = None;
        loop {
            match step().await {
                Err(error) if error.is_database_away() => {
                    let first: &mut Instant = failed_at.get_or_insert_with(Instant::now);
                    if first.elapsed() >= self.limit {
                        return Err(error);
                    }
                    tracing::debug!(%error, "a step of the start waits for the database");
                    tokio::time::sleep(PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use slipway_app::ports::store::Error as StoreError;

    use super::*;

    fn away() -> Error {
        Error::App(StoreError::Unavailable("gone".to_owned()).into())
    }

    #[tokio::test]
    async fn a_step_runs_again_while_the_database_is_away_and_no_longer() {
        let runs = Cell::new(0);
        let come_back_at = |at: u32| {
            let runs = &runs;
            async move || {
                runs.set(runs.get() + 1);
                if runs.get() < at { Err(away()) } else { Ok(runs.get()) }
            }
        };
        let wait = DatabaseWait { limit: Duration::from_secs(60) };
        assert_eq!(wait.run(come_back_at(3)).await.ok(), Some(3));
        runs.set(0);
        let wait = DatabaseWait { limit: Duration::ZERO };
        assert!(wait.run(come_back_at(3)).await.is_err_and(|error| error.is_database_away()));
        assert_eq!(runs.get(), 1, "the limit was over at its first failure");
    }

    #[tokio::test]
    async fn another_error_is_final() {
        let runs = Cell::new(0);
        let wait = DatabaseWait { limit: Duration::from_secs(60) };
        let refused = wait
            .run(async || {
                runs.set(runs.get() + 1);
                Err::<(), _>(Error::App(StoreError::Internal("no".to_owned()).into()))
            })
            .await;
        assert!(refused.is_err());
        assert_eq!(runs.get(), 1);
    }
}
