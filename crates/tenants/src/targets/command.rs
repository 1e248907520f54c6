//! Runs a program with a deadline and bounded output.
//!
//! The program gets a process group of its own, so that with it everything is killed that it
//! started and that did not leave the group on purpose. Its output is read until it ends, or a
//! program that prints more than is kept would block; what is too much is thrown away.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout, timeout_at};

use crate::StepError;

/// What is kept of each of the two outputs: 64 KiB together.
const OUTPUT_LIMIT: usize = 32 * 1_024;

/// What an error shows of it: its end, where programs say what went wrong.
const SHOWN: usize = 1_000;

/// `EX_TEMPFAIL` of `sysexits.h`: the caller is asked to try again later.
const TRY_LATER: i32 = 75;

/// How long output is read after the program itself has ended: something that it started may
/// keep the pipe open.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// Whether an error shows what the program printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    Shown,
    /// It was given a secret, and may print it.
    Hidden,
}

/// Runs a program to its end. `what` names it in errors.
pub(crate) async fn run(
    what: &str,
    command: &[String],
    input: &[u8],
    deadline: Duration,
    printed: Printed,
) -> Result<(), StepError> {
    let ends_at = Instant::now() + deadline;
    let Some((program, arguments)) = command.split_first() else {
        return Err(StepError::permanent(format!("{what} names no program")));
    };
    let mut configured = Command::new(program);
    configured.args(arguments).env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        configured.env("PATH", path);
    }
    configured.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = configured.process_group(0).spawn().map_err(|error| {
        let message = format!("{what}: cannot start {program}: {error}");
        match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                StepError::permanent(message)
            }
            _ => StepError::transient(message),
        }
    })?;
    let mut group = Group::of(child);
    let (stdin, stdout, stderr) =
        (group.child.stdin.take(), group.child.stdout.take(), group.child.stderr.take());
    let mut output = Output::default();
    let ended = timeout_at(ends_at, async {
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A program may end without reading; its exit code says whether that was right.
                let _ = stdin.write_all(input).await;
            }
        };
        let mut errors = Output::default();
        let status = {
            let mut read =
                std::pin::pin!(async { tokio::join!(output.read(stdout), errors.read(stderr)) });
            let mut wait = std::pin::pin!(async { tokio::join!(group.child.wait(), feed).0 });
            tokio::select! {
                status = &mut wait => {
                    let _ = timeout(AFTERWARDS, read).await;
                    status
                }
                _ = &mut read => wait.await,
            }
        };
        output.append(errors);
        status
    })
    .await;
    drop(group);
    let status = match ended {
        Ok(status) => status.map_err(|error| StepError::transient(format!("{what}: {error}")))?,
        Err(_) => {
            let message = format!("{what} took longer than {deadline:?} and was killed");
            return Err(StepError::transient(message));
        }
    };
    if status.success() {
        return Ok(());
    }
    let message = match printed {
        Printed::Shown => format!("{what} ended with {status}: {}", output.end()),
        Printed::Hidden => format!("{what} ended with {status}"),
    };
    match status.code() {
        Some(TRY_LATER) => Err(StepError::transient(message)),
        _ => Err(StepError::permanent(message)),
    }
}

/// A child whose whole group is killed when this is dropped, also with the future of a step
/// that lost its lease.
pub(crate) struct Group {
    pub(crate) child: Child,
    group: Option<Pid>,
}

impl Group {
    pub(crate) fn of(child: Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { group: id.and_then(Pid::from_raw), child }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // The leader may have ended; what it started is still in its group. The id cannot
            // belong to another group while a member lives, and with none this finds nothing.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The first bytes of an output.
#[derive(Default)]
pub(crate) struct Output(Vec<u8>);

impl Output {
    pub(crate) async fn read(&mut self, from: Option<impl AsyncRead + Unpin>) {
        let Some(mut from) = from else { return };
        let mut part = vec![0; 16 * 1_024];
        while let Ok(length @ 1..) = from.read(&mut part).await {
            let room = OUTPUT_LIMIT.saturating_sub(self.0.len());
            self.0.extend_from_slice(&part[..length.min(room)]);
        }
    }

    fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// The last of it, without secrets.
    pub(crate) fn end(&self) -> String {
        // Redacted before it is cut: half of a secret would not be found.
        let text = crate::redacted(String::from_utf8_lossy(&self.0).trim());
        let start = text.len().saturating_sub(SHOWN);
        let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(start);
        text[start..].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
    }

    async fn outcome(script: &str, deadline: Duration) -> Result<(), StepError> {
        run("step crm", &shell(script), b"{\"tenant\": \"acme\"}", deadline, Printed::Shown).await
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn exit_codes_are_classified() {
        assert_eq!(outcome("exit 0", LONG).await, Ok(()));
        let later = outcome("echo busy >&2; exit 75", LONG).await.unwrap_err();
        assert!(later.is_transient() && later.message.contains("busy"), "{later:?}");
        let wrong = outcome("echo 'password=hunter2' ; exit 3", LONG).await.unwrap_err();
        assert!(!wrong.is_transient() && !wrong.message.contains("hunter2"), "{wrong:?}");
        let killed = outcome("kill -9 $$", LONG).await.unwrap_err();
        assert!(!killed.is_transient() && killed.message.contains("signal"), "{killed:?}");
        let absent =
            run("step crm", &["/no/such".to_owned()], b"", LONG, Printed::Shown).await.unwrap_err();
        assert!(!absent.is_transient() && absent.message.contains("/no/such"), "{absent:?}");
    }

    #[tokio::test]
    async fn the_input_arrives_and_the_environment_does_not() {
        let script = "read line; test \"$line\" = '{\"tenant\": \"acme\"}' && \
                      test -z \"$CARGO_PKG_NAME$HOME\" && test -n \"$PATH\"";
        assert_eq!(outcome(script, LONG).await, Ok(()));
        let large = vec![b'x'; 1 << 20];
        assert_eq!(run("deaf", &shell("exit 0"), &large, LONG, Printed::Hidden).await, Ok(()));
    }

    #[tokio::test]
    async fn one_that_never_ends_is_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("id");
        let script = format!("sleep 600 & echo $! > {}; wait", file.display());
        let error = outcome(&script, Duration::from_millis(300)).await.unwrap_err();
        assert!(error.is_transient() && error.message.contains("killed"), "{error:?}");
        let id = std::fs::read_to_string(&file).expect("the id of the child");
        let status = format!("/proc/{}/stat", id.trim());
        // Nobody may be there to wait for it, so that it stays behind as a zombie.
        let over = |stat: String| stat.split(") ").nth(1).is_some_and(|s| s.starts_with('Z'));
        slipway_testkit::wait::until(Duration::from_secs(5), "the child to end", async || {
            std::fs::read_to_string(&status).map_or(true, over)
        })
        .await;
    }

    #[tokio::test]
    async fn output_is_drained_and_bounded() {
        let script = "head -c 200000000 /dev/zero | tr '\\0' x; exit 1";
        let error = outcome(script, LONG).await.unwrap_err();
        assert!(!error.is_transient() && error.message.len() < 2_000, "{}", error.message.len());
        // A process that leaves the group and keeps the pipe does not keep us.
        let started = Instant::now();
        assert_eq!(outcome("setsid sleep 5 & exit 0", LONG).await, Ok(()));
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    }
}
