//! Starts the evaluator, waits as long as it may take, and says how it ended.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::arguments::Arguments;
use crate::failure::{Exit, Failure};

/// More than the evaluator lets itself write.
const LONGEST_OUTPUT: u64 = 9 * 1024 * 1024;
const LONGEST_ERRORS: u64 = 2 * 1024 * 1024;

/// What the evaluator prints before it aborts for lack of memory: Rust, Nickel, and a
/// length that fits into no memory.
const OUT_OF_MEMORY: [&str; 3] = ["memory allocation of", "out of memory", "capacity overflow"];

/// The document, or why there is none.
pub(crate) fn run(arguments: &Arguments) -> Result<Vec<u8>, Failure> {
    let end = watch(arguments.timeout).map_err(|error| {
        Failure::new(Exit::Internal, format!("cannot run the evaluator: {error}"))
    })?;
    match end {
        End::Late => {
            let time = arguments.timeout;
            Err(Failure::new(Exit::Limit, format!("the evaluation took longer than {time:?}")))
        }
        End::Exited { status, output, .. } if status.success() => Ok(output),
        End::Exited { status, errors, .. } => Err(explain(status, errors, arguments)),
    }
}

enum End {
    Late,
    Exited { status: ExitStatus, output: Vec<u8>, errors: Vec<u8> },
}

/// Runs this program as the evaluator, with the same arguments. It gets nothing else of
/// ours, neither variables such as NICKEL_IMPORT_PATH nor input.
fn watch(timeout: Duration) -> io::Result<End> {
    let began = Instant::now();
    let mut evaluator = Command::new(std::env::current_exe()?)
        .arg("--evaluator")
        .args(std::env::args_os().skip(1))
        .env_clear()
        // An allocator of glibc reserves 64 MiB for each thread, of which nothing is used.
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (output, errors) = (evaluator.stdout.take(), evaluator.stderr.take());
    thread::scope(|scope| {
        let (ended, end) = mpsc::channel();
        let of_errors = ended.clone();
        let output = scope.spawn(move || drain(output, LONGEST_OUTPUT, &ended));
        let errors = scope.spawn(move || drain(errors, LONGEST_ERRORS, &of_errors));
        let is_late = (0..2).any(|_| {
            let left = timeout.saturating_sub(began.elapsed());
            end.recv_timeout(left).is_err()
        });
        if is_late {
            evaluator.kill()?;
        }
        let status = evaluator.wait()?;
        let (output, errors) = (output.join(), errors.join());
        if is_late {
            return Ok(End::Late);
        }
        let lost = |_| io::Error::other("a thread that reads its output panicked");
        Ok(End::Exited { status, output: output.map_err(lost)??, errors: errors.map_err(lost)?? })
    })
}

/// Reads what fits, and says when it ended.
fn drain(pipe: Option<impl Read>, longest: u64, ended: &Sender<()>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = pipe.map(|pipe| pipe.take(longest).read_to_end(&mut bytes)).transpose();
    // The receiver is gone if the time was over.
    let _late = ended.send(());
    read.map(|_| bytes)
}

/// Why the evaluator has no document.
fn explain(status: ExitStatus, errors: Vec<u8>, arguments: &Arguments) -> Failure {
    if let Some(exit) = Exit::ALL.into_iter().find(|exit| Some(*exit as i32) == status.code()) {
        return Failure::written(exit, errors);
    }
    let said = String::from_utf8_lossy(&errors);
    let memory = arguments.memory / (1024 * 1024);
    let signal = status.signal().and_then(Signal::from_named_raw);
    let is_abort = signal == Some(Signal::ABORT);
    if is_abort && OUT_OF_MEMORY.iter().any(|words| said.contains(words)) {
        let message = format!("the evaluation needs more than {memory} MiB of memory");
        return Failure::new(Exit::Limit, message);
    }
    if is_abort && said.contains("overflowed its stack") {
        return Failure::new(Exit::Limit, "the evaluation recurses too deeply");
    }
    if matches!(signal, Some(Signal::XCPU | Signal::KILL)) {
        let message = "the evaluator was killed: it used up its CPU time, or the machine has \
                       too little memory";
        return Failure::new(Exit::Limit, message);
    }
    let said = said.lines().take(3).collect::<Vec<_>>().join("; ");
    let message = format!("the evaluator failed ({status}): {said}; please report this");
    Failure::new(Exit::Internal, message)
}
