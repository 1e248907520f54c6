//! `slipway backup`: writes the database and what belongs to it to one file.
//!
//! The file contains the database (API keys and tokens only as hashes) and the
//! signing key, without which nodes would not recognise the installation. It does
//! not contain the substrate root with the high-water mark, which must *not* go
//! back in time (`docs/restore.md`), logs, the event log, and the configuration,
//! which the operator keeps.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use slipway_cli::{Exit, Output, facts, present, say};
use slipway_store::{Beside, Manifest, StoreConfig, database_file};

use super::files;
use crate::arguments::BackupArguments;
use crate::config::{Config, Layer};
use crate::error::Error;

/// The one file beside the database that belongs to the installation.
pub(super) const SIGNING_KEY: &str = "signing.pk8";

#[derive(Debug, Serialize)]
struct Taken {
    file: PathBuf,
    bytes: u64,
    signing_key: bool,
    #[serde(flatten)]
    manifest: Manifest,
}

/// *Expected flow:* copy into a temporary file in the same folder → check the copy
/// → sync it → rename it.
/// *Guarantees:* a file of that name is never half a backup; the control plane
/// runs on meanwhile; without `--force` nothing is replaced, not even a file that
/// appears at the last moment.
pub(crate) async fn run(arguments: BackupArguments, output: Output) -> Result<Exit, Error> {
    let config = Layer::from(arguments.place).resolve(&|name| std::env::var(name).ok())?;
    let database = database_file(&StoreConfig::new(config.database_url.expose()))?;
    let file = arguments.file;
    refuse_the_database(&database, &file)?;
    if file.exists() && !arguments.force {
        return Err(Error::FileExists { path: file });
    }
    let folder = files::folder_of(&file);
    // Only the owner can ever read it, and it is removed if the backup fails.
    let fresh = tempfile::Builder::new()
        .prefix(".slipway-backup-")
        .permissions(std::fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)
        .map_err(Error::io(format!("write in {}", folder.display())))?;
    let beside = beside(&config)?;
    let manifest = slipway_store::backup(
        &database,
        fresh.path(),
        env!("CARGO_PKG_VERSION"),
        beside.as_slice(),
    )
    .await?;
    let failed = || Error::writing(&file);
    fresh.as_file().sync_all().map_err(failed())?;
    let bytes = fresh.as_file().metadata().map_err(failed())?.len();
    let named = if arguments.force { fresh.persist(&file) } else { fresh.persist_noclobber(&file) };
    named.map_err(|error| match error.error.kind() {
        ErrorKind::AlreadyExists => Error::FileExists { path: file.clone() },
        _ => failed()(error.error),
    })?;
    files::sync_folder(folder).map_err(failed())?;

    if beside.is_none() {
        say("warning: there is no signing key in the data directory, so none is in the backup");
    }
    let taken = Taken { file, bytes, signing_key: beside.is_some(), manifest };
    present(&taken, output, |taken, traits| {
        facts(
            vec![
                ("backup", Some(taken.file.display().to_string())),
                ("size", Some(format!("{} bytes", taken.bytes))),
                ("installation", Some(taken.manifest.installation_id.clone())),
                ("taken at", Some(taken.manifest.taken_at.clone())),
                ("schema", Some(taken.manifest.schema_version.to_string())),
                ("signing key", Some(if taken.signing_key { "in it" } else { "none" }.to_owned())),
            ],
            traits.width,
        )
    })?;
    Ok(Exit::Success)
}

/// Refuses to overwrite the database or its journals, even with `--force`.
fn refuse_the_database(database: &Path, file: &Path) -> Result<(), Error> {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let taken = ["", "-wal", "-shm", "-journal"].map(|end| files::with_suffix(database, end));
    if taken.iter().any(|path| resolved(path) == resolved(file)) {
        return Err(Error::IsTheDatabase { path: file.to_path_buf() });
    }
    Ok(())
}

fn beside(config: &Config) -> Result<Option<Beside>, Error> {
    let path = config.data_dir.join(SIGNING_KEY);
    match std::fs::read(&path) {
        Ok(content) => Ok(Some(Beside { name: SIGNING_KEY.to_owned(), content })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::reading(&path)(error)),
    }
}
