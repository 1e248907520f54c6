//! A copy of a tenant's data as it is at one moment, read piece by piece.

use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use tokio::process::{ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::command::{Group, Output};
use crate::StepError;

/// How much is in memory at a time.
const PIECE: usize = 256 * 1_024;

/// How long a program may be silent before it counts as hung.
const SILENCE: Duration = Duration::from_secs(300);

/// What the pieces of an [`Export`] are together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// An archive of `pg_dump --format=custom`, for `pg_restore`.
    PostgresArchive,
    /// A database file of SQLite.
    SqliteDatabase,
}

/// A copy that is being read. It is complete only if [`Export::piece`] said `None`; dropped
/// before, it leaves nothing behind.
pub struct Export {
    format: ExportFormat,
    source: Source,
}

enum Source {
    /// A file without a name.
    File(File),
    Program(Program),
}

/// A program that prints the copy.
pub(crate) struct Program {
    name: &'static str,
    group: Group,
    output: ChildStdout,
    errors: JoinHandle<Output>,
    first: Option<Vec<u8>>,
}

impl Export {
    pub(crate) fn of_file(file: std::fs::File) -> Self {
        let source = Source::File(File::from_std(file));
        Self { format: ExportFormat::SqliteDatabase, source }
    }

    pub(crate) fn of_program(program: Program) -> Self {
        Self { format: ExportFormat::PostgresArchive, source: Source::Program(program) }
    }

    #[must_use]
    pub fn format(&self) -> ExportFormat {
        self.format
    }

    /// The next piece, `None` at the end of a complete copy.
    pub async fn piece(&mut self) -> Result<Option<Vec<u8>>, StepError> {
        match &mut self.source {
            Source::File(file) => {
                let mut piece = vec![0; PIECE];
                let length = file.read(&mut piece).await.map_err(StepError::transient)?;
                piece.truncate(length);
                Ok(Some(piece).filter(|piece| !piece.is_empty()))
            }
            Source::Program(program) => program.piece().await,
        }
    }
}

impl Program {
    /// Starts the program and waits for its first piece: then it is at work.
    pub(crate) async fn start(
        name: &'static str,
        command: &mut Command,
    ) -> Result<Self, StepError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.process_group(0).spawn().map_err(|error| {
            let message = format!("cannot start {name}: {error}");
            match error.kind() {
                std::io::ErrorKind::NotFound => StepError::permanent(format!(
                    "{message}; install it where the control plane runs, in its PATH"
                )),
                _ => StepError::transient(message),
            }
        })?;
        let mut group = Group::of(child);
        let piped = || StepError::permanent(format!("{name} has no output"));
        let output = group.child.stdout.take().ok_or_else(piped)?;
        let errors = group.child.stderr.take();
        let errors = tokio::spawn(async move {
            let mut kept = Output::default();
            kept.read(errors).await;
            kept
        });
        let mut program = Self { name, group, output, errors, first: None };
        program.first = program.piece().await?;
        Ok(program)
    }

    async fn piece(&mut self) -> Result<Option<Vec<u8>>, StepError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let name = self.name;
        let silent = |_| StepError::transient(format!("{name} was silent for {SILENCE:?}"));
        let failed = |error| StepError::transient(format!("{name}: {error}"));
        let mut piece = vec![0; PIECE];
        let read = timeout(SILENCE, self.output.read(&mut piece)).await;
        let length = read.map_err(silent)?.map_err(failed)?;
        if length > 0 {
            piece.truncate(length);
            return Ok(Some(piece));
        }
        let status = timeout(SILENCE, self.group.child.wait()).await;
        let status = status.map_err(silent)?.map_err(failed)?;
        if status.success() {
            return Ok(None);
        }
        let errors = timeout(Duration::from_secs(1), &mut self.errors).await;
        let errors = errors.ok().and_then(Result::ok).unwrap_or_default();
        Err(StepError::permanent(format!("{name} ended with {status}: {}", errors.end())))
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").field("format", &self.format).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    async fn read(script: &str) -> Result<Vec<u8>, StepError> {
        let mut export = Export::of_program(Program::start("sh", &mut shell(script)).await?);
        let mut all = Vec::new();
        while let Some(piece) = export.piece().await? {
            all.extend(piece);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn a_program_that_fails_in_the_middle_is_no_complete_copy() {
        assert_eq!(read("printf one; printf two").await, Ok(b"onetwo".to_vec()));
        assert_eq!(read("true").await, Ok(Vec::new()));
        let large = read("head -c 3000000 /dev/zero").await.map(|all| all.len());
        assert_eq!(large, Ok(3_000_000));
        let broken = "printf one; echo 'postgres://u:hunter2@h/d is down' >&2; exit 1";
        let error = read(broken).await.unwrap_err();
        assert!(error.message.contains("is down"), "{error:?}");
        assert!(!error.message.contains("hunter2"), "{error:?}");
        let absent = Program::start("pg_dump", &mut Command::new("/no/such")).await.err();
        let absent = absent.expect("it cannot be started");
        assert!(absent.message.contains("install it"), "{absent:?}");
    }
}
