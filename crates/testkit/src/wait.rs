//! Waits on a condition. A timeout reports what was observed instead.
//!
//! Must not: wait for time to pass. A test that needs "long enough" names the
//! condition that it means.

use std::fmt::Display;
use std::panic::Location;
use std::time::Duration;

/// The first polls of a wait: too short to be noticed in a test.
const SHORTEST_POLL: Duration = Duration::from_millis(10);

/// Longer waits poll more rarely, since a poll may cost a request to a control
/// plane that needs the same cores to make progress.
const LONGEST_POLL: Duration = Duration::from_millis(50);

/// A poll interval is this part of the time waited so far, so that polling adds
/// at most 5 % to a wait.
const PART: u32 = 20;

/// What a condition may return: `bool`, `Option`, or `Result`, whose error
/// becomes the "last seen" of the message and is therefore the most telling.
pub trait Observation {
    /// What [`until`] returns once the condition holds.
    type Value;

    /// The value, or a description of what was observed instead.
    fn into_outcome(self) -> Result<Self::Value, String>;
}

impl Observation for bool {
    type Value = ();

    fn into_outcome(self) -> Result<(), String> {
        if self { Ok(()) } else { Err("false".to_owned()) }
    }
}

impl<T> Observation for Option<T> {
    type Value = T;

    fn into_outcome(self) -> Result<T, String> {
        self.ok_or_else(|| "None".to_owned())
    }
}

impl<T, E: Display> Observation for Result<T, E> {
    type Value = T;

    fn into_outcome(self) -> Result<T, String> {
        // The alternate form prints the causes of an `anyhow::Error` too.
        self.map_err(|seen| format!("{seen:#}"))
    }
}

/// Polls `condition` every 10 to 50 ms until it holds, and returns its value.
///
/// # Panics
/// When it does not hold within `timeout`, or one poll takes longer than that.
/// The message names `what`, the caller, the number of polls and the last
/// observation.
#[track_caller]
pub fn until<C, O>(
    timeout: Duration,
    what: &str,
    mut condition: C,
) -> impl Future<Output = O::Value>
where
    C: AsyncFnMut() -> O,
    O: Observation,
{
    let caller = Location::caller();
    async move {
        let (mut asked, begun) = (0_u32, tokio::time::Instant::now());
        let mut last_seen = None;
        let asking = async {
            loop {
                asked += 1;
                match condition().await.into_outcome() {
                    Ok(value) => break value,
                    Err(seen) => last_seen = Some(seen),
                }
                tokio::time::sleep(poll_interval(begun.elapsed())).await;
            }
        };
        if let Ok(value) = tokio::time::timeout(timeout, asking).await {
            return value;
        }
        let last_seen = last_seen.unwrap_or_else(|| "nothing, no asking came to an end".to_owned());
        panic!(
            "waited {timeout:?} in vain for {what} (at {caller}); asked {asked} times, \
             last seen: {last_seen}"
        );
    }
}

fn poll_interval(waited: Duration) -> Duration {
    (waited / PART).clamp(SHORTEST_POLL, LONGEST_POLL)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{poll_interval, until};

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn returns_the_value_as_soon_as_the_condition_holds() {
        let mut asked = 0;
        let value = until(Duration::from_secs(5), "the third asking", async || {
            asked += 1;
            (asked == 3).then_some(asked)
        })
        .await;
        assert_eq!((value, asked), (3, 3));
    }

    #[test]
    fn a_long_wait_polls_more_rarely() {
        let milliseconds = |waited| poll_interval(Duration::from_millis(waited)).as_millis();
        assert_eq!([0, 200, 400, 1_000, 40_000].map(milliseconds), [10, 10, 20, 50, 50]);
    }

    #[tokio::test]
    #[should_panic(expected = "in vain for the moon (at ")]
    async fn a_timeout_names_what_was_waited_for() {
        until(SHORT, "the moon", async || false).await;
    }

    #[tokio::test]
    #[should_panic(expected = "last seen: phase is Pending")]
    async fn a_timeout_tells_the_last_observation() {
        until(SHORT, "Ready", async || Err::<(), _>("phase is Pending")).await;
    }

    #[tokio::test]
    #[should_panic(expected = "no asking came to an end")]
    async fn a_condition_that_hangs_is_cut_off() {
        until(SHORT, "an answer", async || {
            std::future::pending::<()>().await;
            true
        })
        .await;
    }
}
