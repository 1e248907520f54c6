//! `slipway restore`: replaces the database by a backup. The control plane then
//! observes only, until a person resumes.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use slipway_app::ports::Clock as _;
use slipway_cli::{Exit, Output, agree, facts, present};
use slipway_core::access::audit::Actor;
use slipway_core::operations::control;
use slipway_store::{Beside, DirectoryLock, Manifest, StoreConfig, database_file};

use super::backup::SIGNING_KEY;
use super::files;
use crate::adapters::SystemClock;
use crate::arguments::RestoreArguments;
use crate::config::{Config, Layer};
use crate::error::Error;

/// The folder in which the restored database is prepared. Only a crash leaves it
/// behind, and then nobody needs it. One name is enough: a restore locks the data
/// directory.
const STAGING: &str = "slipway.restoring";

#[derive(Debug, Serialize)]
struct Restored {
    database: PathBuf,
    /// The folder with the files that were there before.
    kept_aside: Option<PathBuf>,
    signing_key: bool,
    #[serde(flatten)]
    manifest: Manifest,
}

/// *Expected flow:* check the backup → lock the data directory → prepare the
/// database from it in a folder of its own (schema of this binary, mode
/// `observing`) → link or move the old files aside → rename.
/// *Guarantees:* until the rename the old database is in place; after it the new
/// one, complete and observing. A crash in between may leave the old one without
/// its last commits, if the checkpoint failed; they are kept aside, and the
/// high-water mark reveals it at the next start. Nothing is deleted.
pub(crate) async fn run(arguments: RestoreArguments, output: Output) -> Result<Exit, Error> {
    let config = Layer::from(arguments.place).resolve(&|name| std::env::var(name).ok())?;
    let database = database_file(&StoreConfig::new(config.database_url.expose()))?;
    // Before anything is created or locked, so that a wrong name leaves no trace.
    let backup = &arguments.file;
    std::fs::File::open(backup).map_err(Error::reading(backup))?;
    let manifest = slipway_store::backup_check(backup).await?;
    let folder = files::folder_of(&database).to_path_buf();
    let _held = DirectoryLock::acquire(&folder)?;
    if database.exists() {
        agree(
            arguments.yes,
            &format!(
                "Replace {} by the backup of {}? What is there is kept aside.",
                database.display(),
                manifest.taken_at
            ),
        )?;
    }
    let staging = folder.join(STAGING);
    let replaced = replace(&config, &database, backup, &manifest, &staging).await;
    // Also after a failure: the unusable copy has the size of the database, and
    // if the disk was full, it would be even fuller.
    let cleaned = std::fs::remove_dir_all(&staging);
    let (kept_aside, signing_key) = replaced?;
    cleaned.map_err(Error::io(format!("remove {}", staging.display())))?;

    let restored = Restored { database, kept_aside, signing_key, manifest };
    present(&restored, output, |restored, traits| table(restored, traits.width))?;
    Ok(Exit::Success)
}

/// Returns where the old database is kept, and whether the backup has a signing
/// key.
async fn replace(
    config: &Config,
    database: &Path,
    backup: &Path,
    manifest: &Manifest,
    staging: &Path,
) -> Result<(Option<PathBuf>, bool), Error> {
    let staged = stage(backup, staging)?;
    let beside = prepare(&staged, backup, manifest).await?;
    let aside = put_aside(config, database).await?;
    install(config, &staged, database, &beside)?;
    Ok((aside, !beside.is_empty()))
}

fn table(restored: &Restored, width: Option<u16>) -> String {
    let facts = facts(
        vec![
            ("restored", Some(restored.database.display().to_string())),
            ("from", Some(restored.manifest.taken_at.clone())),
            ("installation", Some(restored.manifest.installation_id.clone())),
            ("signing key", Some(if restored.signing_key { "restored" } else { "none" }.into())),
            ("kept aside", restored.kept_aside.as_ref().map(|path| path.display().to_string())),
        ],
        width,
    );
    format!(
        "{facts}\n\nStart it; nothing outside is changed until you resume:\n\n    \
         slipway up\n    slipway withheld\n    slipway resume --reason <why>\n\n\
         docs/restore.md has the steps."
    )
}

/// Copies the backup into a folder of its own that only this user can read.
fn stage(backup: &Path, staging: &Path) -> Result<PathBuf, Error> {
    let failed = || Error::writing(staging);
    match std::fs::remove_dir_all(staging) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed()(error)),
    }
    DirBuilder::new().mode(0o700).create(staging).map_err(failed())?;
    let staged = staging.join("slipway.db");
    let mut from = std::fs::File::open(backup).map_err(Error::reading(backup))?;
    let mut to = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&staged)
        .map_err(failed())?;
    std::io::copy(&mut from, &mut to).map_err(failed())?;
    Ok(staged)
}

async fn prepare(staged: &Path, backup: &Path, manifest: &Manifest) -> Result<Vec<Beside>, Error> {
    let actor = Actor::new("slipway restore");
    let reason = format!(
        "restored from {}, taken at {}; what happened since is not in it",
        backup.file_name().unwrap_or_default().to_string_lossy(),
        manifest.taken_at
    );
    let mut rule = |found: &control::LockedControl| {
        Ok(Some(control::restored(&found.control, &reason, &actor)))
    };
    let beside = slipway_store::restore_prepare(staged, &mut rule).await?;
    let file = std::fs::File::open(staged).and_then(|file| file.sync_all());
    file.map_err(Error::writing(staged))?;
    Ok(beside)
}

/// Keeps the old database aside, even one that cannot be read. It also stays in
/// place until the rename replaces it.
async fn put_aside(config: &Config, database: &Path) -> Result<Option<PathBuf>, Error> {
    let key = config.data_dir.join(SIGNING_KEY);
    let journals = ["-wal", "-shm", "-journal"].map(|end| files::with_suffix(database, end));
    // Also if the database itself is missing: SQLite would take its journals for
    // those of the new one.
    let mut old = journals.iter().map(PathBuf::as_path).chain([database, key.as_path()]);
    if !old.any(Path::exists) {
        return Ok(None);
    }
    if database.exists() {
        // Folds the journal into the file. A damaged database is kept as it is.
        let _ = slipway_store::checkpoint(database).await;
    }
    let folder = files::folder_of(database);
    let aside = folder.join(format!("before-restore-{}", files::stamp(SystemClock.now())));
    let aside = files::make_folder(&aside).map_err(Error::writing(&aside))?;
    let failed = || Error::writing(&aside);
    for kept in [database, key.as_path()] {
        let Some(name) = kept.file_name().filter(|_| kept.exists()) else { continue };
        link_or_copy(kept, &aside.join(name)).map_err(failed())?;
    }
    // SQLite would apply a journal of the old database to the new one.
    for journal in &journals {
        if let Some(name) = journal.file_name().filter(|_| journal.exists()) {
            std::fs::rename(journal, aside.join(name)).map_err(failed())?;
        }
    }
    // A version before may have left it readable by others.
    if let Some(name) = database.file_name() {
        slipway_store::narrow_files(&aside.join(name));
    }
    files::sync_folder(&aside).map_err(failed())?;
    files::sync_folder(folder).map_err(failed())?;
    Ok(Some(aside))
}

/// Copies if a link fails: the key may be on another file system than the
/// database.
fn link_or_copy(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Err(_) => {
            std::fs::copy(from, to)?;
            std::fs::File::open(to)?.sync_all()
        }
    }
}

/// Installs the key first: a start after a crash in between would otherwise
/// generate another one.
fn install(
    config: &Config,
    staged: &Path,
    database: &Path,
    beside: &[Beside],
) -> Result<(), Error> {
    let failed = || Error::writing(&config.data_dir);
    for file in beside.iter().filter(|file| file.name == SIGNING_KEY) {
        DirBuilder::new().recursive(true).mode(0o700).create(&config.data_dir).map_err(failed())?;
        files::write_private(&config.data_dir.join(SIGNING_KEY), &file.content).map_err(failed())?;
        files::sync_folder(&config.data_dir).map_err(failed())?;
    }
    std::fs::rename(staged, database).map_err(failed())?;
    files::sync_folder(files::folder_of(database)).map_err(failed())
}
