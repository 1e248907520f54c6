//! The process that evaluates. It gives up every right that it does not need before it
//! reads the file: memory, time, core dumps, and, as soon as all sources are in memory,
//! the right to open anything. Whatever the file makes Nickel do then, it reads nothing more.

use std::{panic, thread};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::arguments::Arguments;
use crate::evaluation;
use crate::failure::{Exit, Failure};
use crate::folder::{Folder, folder_of};
use crate::sources::Sources;

/// The part of the memory that is for the stack. Nickel evaluates without it, but parses,
/// checks types and serialises by recursion.
const STACK_SHARE: u64 = 8;

/// A system may refuse to map more than it has memory.
const LARGEST_STACK: u64 = 256 * 1024 * 1024;

/// The document, or why there is none.
pub(crate) fn run(arguments: &Arguments) -> Result<Vec<u8>, Failure> {
    let cannot_limit =
        |errno: Errno| Failure::new(Exit::Internal, format!("cannot limit the evaluator: {errno}"));
    lower(Resource::As, arguments.memory).map_err(cannot_limit)?;
    lower(Resource::Core, 0).map_err(cannot_limit)?;
    // Ends it also when nobody waits for it any more. The supervisor measures the time
    // that has passed, which is never less than that of one thread.
    lower(Resource::Cpu, arguments.timeout.as_secs() + 1).map_err(cannot_limit)?;

    // To unwind means to drop what fills the memory, by recursion.
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |information| {
        print(information);
        std::process::abort();
    }));

    let stack = (arguments.memory / STACK_SHARE).min(LARGEST_STACK);
    let stack = usize::try_from(stack).unwrap_or(usize::MAX);
    thread::scope(|scope| {
        let evaluator = thread::Builder::new()
            .name("evaluator".to_owned())
            .stack_size(stack)
            .spawn_scoped(scope, || read_and_evaluate(arguments))
            .map_err(|error| {
                Failure::new(Exit::Internal, format!("cannot start a thread: {error}"))
            })?;
        evaluator.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
    })
}

fn read_and_evaluate(arguments: &Arguments) -> Result<Vec<u8>, Failure> {
    let file = &arguments.file;
    let root = arguments.root.as_deref().unwrap_or(folder_of(file));
    let folder = Folder::open(root).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot open the folder {}: {error}", root.display()))
    })?;
    let path = folder.relative(file).map_err(|error| {
        Failure::new(error.exit(Exit::Usage), format!("cannot read {}: {error}", file.display()))
    })?;
    let sources = Sources::read(&folder, &path)?;
    lower(Resource::Nofile, 0).map_err(|errno| {
        Failure::new(Exit::Internal, format!("cannot limit the evaluator: {errno}"))
    })?;
    evaluation::evaluate(sources)
}

/// Never above a limit that holds already.
fn lower(resource: Resource, limit: u64) -> Result<(), Errno> {
    let held = getrlimit(resource).maximum;
    let limit = Some(held.map_or(limit, |held| held.min(limit)));
    setrlimit(resource, Rlimit { current: limit, maximum: limit })
}
