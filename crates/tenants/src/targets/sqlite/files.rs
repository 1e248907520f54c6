//! The files of a tenant as a whole.
//!
//! *Expected flow:* lock the tenant's note, refuse a lower fence, write the fence into it, then
//! act on the file, then make the folder durable.
//!
//! *Guarantees:* a file appears whole, with its tables and its fence, or not at all; a file that
//! exists is never overwritten; a late worker neither makes nor moves nor removes one.
//!
//! *Assumptions:* a tenant is closed, moved back or removed when no application has it open. One
//! that has it open is noticed by SQLite's locks, and the call is tried again later.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use slipway_durable::Moment;
use slipway_durable::database::{ErrorClass, class, sqlite};
use sqlx::sqlite::SqliteJournalMode;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::{SqliteTarget, migrate};
use crate::StepError;
use crate::targets::export::Export;
use crate::targets::failure::{Failure, belongs_to, fenced};
use crate::targets::files;
use crate::targets::names::{self, TenantNames};
use crate::targets::target::{Fence, Work};

/// Where closed tenants are.
const CLOSED: &str = "closed";

/// Where the notes are.
const NOTES: &str = ".slipway";

/// How long a call waits for another that acts on the same tenant.
const LOCK_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// SQLite's instructions after which a copy looks whether somebody still waits for it.
const INSTRUCTIONS: i32 = 10_000;

/// The tables that every tenant has.
pub(super) const TABLES: &str = "CREATE TABLE IF NOT EXISTS slipway_tenant (
        one INTEGER PRIMARY KEY CHECK (one = 1), tenant TEXT NOT NULL,
        work INTEGER NOT NULL, token INTEGER NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS slipway_migrations (
        kind TEXT NOT NULL, version TEXT NOT NULL, file TEXT NOT NULL, checksum TEXT,
        status TEXT NOT NULL, work INTEGER NOT NULL, token INTEGER NOT NULL,
        applied_at INTEGER NOT NULL DEFAULT (unixepoch()), PRIMARY KEY (kind, version)) STRICT;";

/// What is kept of a tenant beside its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// The owner of the name.
    tenant: String,
    fence: Fence,
    /// Whether a file of this tenant was made and not removed. It is set before and taken
    /// back after.
    has_file: bool,
}

/// The note of a tenant, locked until it is dropped.
#[derive(Debug)]
struct Locked {
    lock: Arc<File>,
    path: PathBuf,
    note: Option<Note>,
}

/// The file of a copy that is being made. Dropped, it is gone.
#[derive(Debug)]
struct CopyFile(PathBuf);

impl CopyFile {
    fn remove(&self) -> Result<(), Failure> {
        files::remove(&self.0).map_err(|error| io(&self.0, &error))
    }
}

impl Drop for CopyFile {
    fn drop(&mut self) {
        // The next copy removes what cannot be removed now.
        let _ = self.remove();
    }
}

impl SqliteTarget {
    pub(super) fn path(&self, names: &TenantNames) -> PathBuf {
        self.folder.join(names.file())
    }

    fn closed_path(&self, names: &TenantNames) -> PathBuf {
        self.folder.join(CLOSED).join(names.file())
    }

    /// One connection, closed by the caller or with its drop.
    pub(super) async fn connect(
        &self,
        path: &Path,
        mode: SqliteJournalMode,
    ) -> Result<SqliteConnection, Failure> {
        let options = sqlite::options(path).create_if_missing(false).journal_mode(mode);
        let options = options.busy_timeout(self.settings.lock_timeout());
        Ok(sqlite::connect(&options.disable_statement_logging()).await?)
    }

    /// The file of a tenant that is open.
    pub(super) async fn open(&self, names: &TenantNames) -> Result<SqliteConnection, Failure> {
        let path = self.path(names);
        if !path.exists() && self.closed_path(names).exists() {
            let tenant = names.tenant();
            let problem = format!("tenant {tenant} is closed: reopen it, or destroy it first");
            return Err(Failure::permanent(problem));
        }
        must_exist(&path, names)?;
        self.connect(&path, SqliteJournalMode::Wal).await
    }

    pub(super) async fn make_file(&self, work: &Work<'_>) -> Result<(), Failure> {
        let (names, path) = (work.names, self.path(work.names));
        let object = names::file(&names.file());
        let mut locked = self.lock(names).await?;
        let exists = path.exists() || self.closed_path(names).exists();
        let is_ours = locked.has_file(names);
        if exists && !is_ours {
            return Err(Failure::permanent(format!(
                "{object} exists and is not known as tenant {}'s: nothing existing is taken over; \
                 remove or rename it, or choose another prefix",
                names.tenant()
            )));
        }
        if exists && !work.journal.has(&object) {
            return Err(Failure::permanent(format!(
                "{object} exists and another job made it for tenant {}: destroy that tenant first",
                names.tenant()
            )));
        }
        self.refuse_lower(&locked, work).await?;
        work.journal.making(&object).await?;
        locked.write(work, true).await?;
        if !exists {
            self.build(&locked, work, &path).await?;
        }
        Ok(())
    }

    /// Builds the file under another name, and gives it its own when all of it is on the disk.
    async fn build(&self, locked: &Locked, work: &Work<'_>, path: &Path) -> Result<(), Failure> {
        let temporary = self.folder.join(format!(".{}.new", work.names.file()));
        files::remove(&temporary).map_err(|error| io(&temporary, &error))?;
        files::create_private(&temporary).map_err(|error| io(&temporary, &error))?;
        let mut connection = self.connect(&temporary, SqliteJournalMode::Delete).await?;
        sqlx::raw_sql(TABLES).execute(&mut connection).await?;
        let insert = "INSERT INTO slipway_tenant VALUES (1, $1, $2, $3)";
        let query = sqlx::query(insert).bind(work.names.owner());
        query.bind(work.fence.work).bind(work.fence.token).execute(&mut connection).await?;
        connection.close().await?;
        locked.move_file(&temporary, path).await
    }

    pub(super) async fn remove_object(&self, work: &Work<'_>, object: &str) -> Result<(), Failure> {
        if object != names::file(&work.names.file()) {
            let tenant = work.names.tenant();
            let problem = format!("`{object}` is no object of tenant {tenant}; it is left alone");
            return Err(Failure::permanent(problem));
        }
        self.remove_all(work).await
    }

    /// Removes the file, open or closed, with all that SQLite has beside it.
    pub(super) async fn remove_all(&self, work: &Work<'_>) -> Result<(), Failure> {
        let names = work.names;
        let mut locked = self.lock(names).await?;
        if locked.is_free_of(names)? {
            return Ok(work.journal.removed(&names::file(&names.file())).await?);
        }
        self.refuse_lower(&locked, work).await?;
        let is_ours = locked.has_file(names);
        locked.write(work, is_ours).await?;
        if is_ours {
            let (path, closed) = (self.path(names), self.closed_path(names));
            if path.exists() {
                // Whoever has it open is refused by the fence in it, or holds us up.
                self.fence_file(&path, work).await?;
            }
            let new = self.folder.join(format!(".{}.new", names.file()));
            // The database first: what is beside it means nothing without it.
            let ends = ["", "-wal", "-shm", "-journal"];
            let copy = self.copy_path(names);
            let paths = [&path, &closed, &new, &copy];
            let paths: Vec<_> =
                paths.iter().flat_map(|path| ends.iter().map(|end| beside(path, end))).collect();
            let folders = [self.folder.clone(), self.folder.join(CLOSED)];
            let remove = move || {
                paths.iter().try_for_each(|path| files::remove(path))?;
                let mut folders = folders.iter().filter(|folder| folder.exists());
                folders.try_for_each(|folder| files::sync_folder(folder))
            };
            locked.on_disk(&path, remove).await?;
            let left = [&path, &closed].into_iter().find(|path| path.exists());
            if let Some(left) = left {
                let problem = format!("still there after it was removed: {}", left.display());
                return Err(Failure::transient(problem));
            }
            locked.write(work, false).await?;
        }
        work.journal.removed(&names::file(&names.file())).await?;
        Ok(())
    }

    /// Moves the file where nobody looks for it. A job that failed may have left none behind: that
    /// is closed, too.
    pub(super) async fn move_aside(&self, work: &Work<'_>) -> Result<(), Failure> {
        let names = work.names;
        let (path, closed) = (self.path(names), self.closed_path(names));
        let mut locked = self.lock(names).await?;
        if locked.is_free_of(names)? {
            return Ok(());
        }
        self.refuse_lower(&locked, work).await?;
        if !path.exists() {
            let has_file = locked.has_file(names);
            return locked.write(work, has_file).await;
        }
        // It refuses a file that is not ours.
        self.fence_file(&path, work).await?;
        locked.write(work, true).await?;
        files::create_folder(&self.folder.join(CLOSED)).map_err(|error| io(&closed, &error))?;
        locked.move_file(&path, &closed).await
    }

    /// Undoes [`Self::move_aside`]. A file that was there and is lost is an error: a tenant without
    /// its data is not as it was.
    pub(super) async fn move_back(&self, work: &Work<'_>) -> Result<(), Failure> {
        let names = work.names;
        let (path, closed) = (self.path(names), self.closed_path(names));
        let mut locked = self.lock(names).await?;
        if locked.is_free_of(names)? {
            return Ok(());
        }
        self.refuse_lower(&locked, work).await?;
        if !closed.exists() {
            let has_file = locked.has_file(names);
            if has_file {
                must_exist(&path, names)?;
            }
            return locked.write(work, has_file).await;
        }
        locked.write(work, true).await?;
        locked.move_file(&closed, &path).await
    }

    /// Copies the file, open or closed, into one without a name. If nobody waits for it any more the
    /// copy is given up; until it has ended it keeps the lock.
    pub(super) async fn copy_file(&self, names: &TenantNames) -> Result<Export, Failure> {
        let locked = self.lock(names).await?;
        let closed = self.closed_path(names);
        let (path, mode) = match closed.exists() && !self.path(names).exists() {
            true => (closed, SqliteJournalMode::Delete),
            false => (self.path(names), SqliteJournalMode::Wal),
        };
        must_exist(&path, names)?;
        if !locked.is_of(names) {
            let problem = format!("{} is not known as tenant {}'s", path.display(), names.tenant());
            return Err(Failure::permanent(problem));
        }
        let waiting = Arc::new(());
        let waits = Arc::downgrade(&waiting);
        let (this, copy) = (self.clone(), CopyFile(self.copy_path(names)));
        let copying = tokio::spawn(async move {
            let copied = this.copy_into(&copy.0, &path, mode, waits).await;
            let removed = copy.remove();
            drop(locked);
            removed.and(copied)
        });
        let copied = copying.await.map_err(StepError::transient)?;
        drop(waiting);
        Ok(Export::of_file(copied?))
    }

    /// `waits` is dead when nobody waits any more.
    async fn copy_into(
        &self,
        copy: &Path,
        path: &Path,
        mode: SqliteJournalMode,
        waits: Weak<()>,
    ) -> Result<File, Failure> {
        // One name will do: whoever copies has the lock. One that is there is of a dead copy.
        files::remove(copy).map_err(|error| io(copy, &error))?;
        files::create_private(copy).map_err(|error| io(copy, &error))?;
        let mut connection = self.connect(path, mode).await?;
        let mut handle = connection.lock_handle().await?;
        handle.set_progress_handler(INSTRUCTIONS, move || waits.strong_count() > 0);
        drop(handle);
        let into = copy.to_string_lossy().into_owned();
        sqlx::query("VACUUM INTO $1").bind(into).execute(&mut connection).await?;
        connection.close().await?;
        File::open(copy).map_err(|error| io(copy, &error))
    }

    fn copy_path(&self, names: &TenantNames) -> PathBuf {
        self.folder.join(format!(".{}.copy", names.file()))
    }

    pub(super) async fn highest_fence(
        &self,
        names: &TenantNames,
    ) -> Result<Option<Fence>, Failure> {
        if !self.note_path(names).exists() && !self.path(names).exists() {
            return Ok(None);
        }
        let locked = self.lock(names).await?;
        self.known_fence(&locked, names).await
    }

    /// The higher one of the fence in the note and the one in the file.
    async fn known_fence(
        &self,
        locked: &Locked,
        names: &TenantNames,
    ) -> Result<Option<Fence>, Failure> {
        let Some(note) = locked.note.as_ref().filter(|_| locked.is_of(names)) else {
            return Ok(None);
        };
        // A closed file has nothing beside it, and keeps it so.
        let paths = [
            (self.path(names), SqliteJournalMode::Wal),
            (self.closed_path(names), SqliteJournalMode::Delete),
        ];
        let found = paths.into_iter().find(|(path, _)| note.has_file && path.exists());
        let Some((path, mode)) = found else { return Ok(Some(note.fence)) };
        let mut connection = self.connect(&path, mode).await?;
        let read = "SELECT work, token FROM slipway_tenant WHERE tenant = $1";
        let query = sqlx::query_as(read).bind(names.owner());
        let row: Option<(i64, i64)> = query.fetch_optional(&mut connection).await?;
        connection.close().await?;
        Ok(Some(note.fence).max(row.map(|(work, token)| Fence { work, token })))
    }

    /// Refuses another tenant's name while a file of it exists, and a lower fence.
    async fn refuse_lower(&self, locked: &Locked, work: &Work<'_>) -> Result<(), Failure> {
        if let Some(owner) = locked.other(work.names) {
            return Err(belongs_to(work.names, owner));
        }
        let known = self.known_fence(locked, work.names).await?;
        let is_lost = |known: Fence| work.lost.is_some_and(|lost| lost.has(known.work));
        let is_ahead = known > Some(work.fence) || known.is_some_and(is_lost);
        if is_ahead { Err(fenced(known, work)) } else { Ok(()) }
    }

    /// Writes the fence into a file that is about to go, and folds what is beside it into it.
    /// That fails while somebody else has it open.
    async fn fence_file(&self, path: &Path, work: &Work<'_>) -> Result<(), Failure> {
        let mut connection = self.connect(path, SqliteJournalMode::Wal).await?;
        migrate::begin(&mut connection, work).await?;
        sqlx::query("COMMIT").execute(&mut connection).await?;
        let in_use = |error: sqlx::Error| match class(&error) == ErrorClass::Conflict {
            true => Failure::transient(format!("{} is in use: close it first", path.display())),
            false => Failure::from(error),
        };
        let delete = "PRAGMA journal_mode = DELETE";
        sqlx::query(delete).fetch_one(&mut connection).await.map_err(in_use)?;
        connection.close().await?;
        Ok(())
    }

    fn note_path(&self, names: &TenantNames) -> PathBuf {
        self.folder.join(NOTES).join(format!("{}.json", names.schema()))
    }

    /// Waits for the lock of a tenant and reads its note. The lock is on a file of its own, since
    /// the note is replaced as a whole.
    async fn lock(&self, names: &TenantNames) -> Result<Locked, Failure> {
        let path = self.note_path(names);
        let beside = path.with_extension("lock");
        let open = || {
            files::create_folder(&self.folder.join(NOTES))?;
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&beside)
        };
        let lock = open().map_err(|error| io(&beside, &error))?;
        let started = Moment::now();
        while let Err(error) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            if error != Errno::WOULDBLOCK {
                return Err(io(&beside, &error.into()));
            }
            if started.elapsed() > LOCK_LIMIT {
                let problem = format!("another call on tenant {} does not end", names.tenant());
                return Err(Failure::transient(problem));
            }
            tokio::time::sleep(POLL).await;
        }
        let note = match std::fs::read_to_string(&path) {
            Ok(text) => Some(serde_json::from_str(&text).map_err(|error| {
                Failure::permanent(format!("{} cannot be read: {error}", path.display()))
            })?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(io(&path, &error)),
        };
        Ok(Locked { lock: Arc::new(lock), path, note })
    }
}

impl Locked {
    /// Waits for the disk beside the runtime. A call that was begun ends, also if nobody waits for it
    /// any more; until then it keeps the lock.
    async fn on_disk(
        &self,
        path: &Path,
        call: impl FnOnce() -> std::io::Result<()> + Send + 'static,
    ) -> Result<(), Failure> {
        let lock = Arc::clone(&self.lock);
        let done = tokio::task::spawn_blocking(move || {
            let done = call();
            drop(lock);
            done
        });
        done.await.map_err(StepError::transient)?.map_err(|error| io(path, &error))
    }

    /// Moves a file to a name that nobody has, durably.
    async fn move_file(&self, from: &Path, to: &Path) -> Result<(), Failure> {
        let (from, target) = (from.to_owned(), to.to_owned());
        let rename = move || {
            match renameat_with(CWD, &from, CWD, &target, RenameFlags::NOREPLACE) {
                // This file system cannot refuse. The caller has the lock and saw that nothing
                // is there, so only somebody else's file could be lost.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    std::fs::rename(&from, &target)?;
                }
                moved => moved?,
            }
            for path in [&target, &from] {
                files::sync_folder(path.parent().unwrap_or(Path::new("/")))?;
            }
            Ok(())
        };
        self.on_disk(to, rename).await
    }

    fn is_of(&self, names: &TenantNames) -> bool {
        self.note.as_ref().is_some_and(|note| note.tenant == names.owner())
    }

    fn has_file(&self, names: &TenantNames) -> bool {
        self.is_of(names) && self.note.as_ref().is_some_and(|note| note.has_file)
    }

    /// The other tenant that has the name and a file.
    fn other(&self, names: &TenantNames) -> Option<&str> {
        let note = self.note.as_ref().filter(|note| note.has_file && !self.is_of(names))?;
        Some(&note.tenant)
    }

    /// Whether another tenant has the name. Then nothing of this one exists, since the other was
    /// refused as long as anything did.
    fn is_free_of(&self, names: &TenantNames) -> Result<bool, Failure> {
        match self.other(names) {
            Some(owner) if names.is_unclear(owner) => Err(belongs_to(names, owner)),
            other => Ok(other.is_some()),
        }
    }

    async fn write(&mut self, work: &Work<'_>, has_file: bool) -> Result<(), Failure> {
        let (tenant, fence) = (work.names.owner().to_owned(), work.fence);
        let note = Note { tenant, fence, has_file };
        if self.note.as_ref() == Some(&note) {
            return Ok(());
        }
        let text = serde_json::to_string(&note).map_err(StepError::from)?;
        // One name will do: whoever writes here has the lock.
        let path = self.path.clone();
        let write = move || files::write_private(&path, text.as_bytes(), "new");
        self.on_disk(&self.path, write).await?;
        self.note = Some(note);
        Ok(())
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn must_exist(path: &Path, names: &TenantNames) -> Result<(), Failure> {
    if path.exists() {
        return Ok(());
    }
    let problem = format!("tenant {} has no file {}", names.tenant(), path.display());
    Err(Failure::permanent(problem))
}

/// A disk that is full or a folder that is not mounted: a person can help, and nothing is
/// undone meanwhile.
fn io(path: &Path, error: &std::io::Error) -> Failure {
    Failure::transient(format!("{}: {error}", path.display()))
}
