//! `slipway apply --watch`: keeps files applied.
//!
//! The system tells it at once when something in the folders changes ([`super::changed`]). It
//! also looks for changed files by their times and sizes, since an event of a mounted volume
//! may get lost, and applies everything again every minute, since somebody may have changed an
//! object by hand. A file that cannot be read blocks only itself, and nothing is pruned until
//! it can be read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::apply::{ApplyArguments, Declared, faults, record, show};
use super::changed::Events;
use super::{changes, prune};
use crate::error::Error;
use crate::session::Session;
use crate::terminal::clean;

/// How often everything is applied although no file changed.
const ANEW: Duration = Duration::from_secs(60);

pub(super) async fn run(
    session: &mut Session<'_>,
    arguments: &ApplyArguments,
) -> Result<(), Error> {
    if arguments.prune {
        // Nobody is asked every time.
        if !arguments.yes {
            return Err(Error::Usage("--watch with --prune wants --yes".to_owned()));
        }
        prune::check(session, &Declared::read(&arguments.files)?, true)?;
    }
    let (mut seen, mut applied, mut shown) = (None, None::<Instant>, String::new());
    let events = Events::new();
    loop {
        let paths = &arguments.files.files;
        // Before the files are looked at, so that no change falls in between.
        events.watch(paths);
        let now = files(paths);
        let due = applied.is_none_or(|at| at.elapsed() >= ANEW);
        if due || seen.as_ref() != Some(&now) {
            let outcome = pass(session, arguments).await;
            if outcome != shown {
                session.terminal.say(&outcome);
                shown = outcome;
            }
            (seen, applied) = (Some(now), Some(Instant::now()));
        }
        tokio::select! {
            () = events.changed() => {}
            () = tokio::time::sleep(arguments.interval) => {}
        }
    }
}

/// Applies once; every outcome is a text, and the next pass tries again.
async fn pass(session: &mut Session<'_>, arguments: &ApplyArguments) -> String {
    let outcome = async {
        let declared = Declared::read(&arguments.files)?;
        let lines = declared.send(session, false).await?;
        if changes::differ(&lines) {
            show(session, &lines);
        }
        let mut left = Vec::new();
        if arguments.prune {
            left = prune::run(session, &declared, &lines, true, None).await?;
        }
        let faults = faults(&declared, &lines);
        record(session, &declared, &faults).await?;
        Ok::<_, Error>(faults.into_iter().chain(left).collect::<Vec<_>>())
    };
    match outcome.await {
        Ok(faults) if faults.is_empty() => "applied".to_owned(),
        Ok(faults) => {
            let lines = faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message));
            let lines: Vec<_> = lines.map(|line| clean(&line)).collect();
            format!("not applied:\n  {}", lines.join("\n  "))
        }
        Err(error) => format!("not applied: {}", clean(&error.to_string())),
    }
}

/// The files with what tells that one changed.
fn files(paths: &[PathBuf]) -> BTreeMap<PathBuf, (Option<SystemTime>, u64)> {
    let mut found = BTreeMap::new();
    for path in paths {
        walk(path, 0, &mut found);
    }
    found
}

fn walk(path: &Path, depth: usize, found: &mut BTreeMap<PathBuf, (Option<SystemTime>, u64)>) {
    let Ok(about) = std::fs::metadata(path) else { return };
    if about.is_dir() && depth < 32 {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| walk(&entry.path(), depth + 1, found));
    } else if about.is_file() {
        found.insert(path.to_owned(), (about.modified().ok(), about.len()));
    }
}
