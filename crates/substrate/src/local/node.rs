//! Reads and changes one node directory and the object in it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use slipway_render::composite::LABEL_PROVISIONED_RESOURCE;

use super::files;

const OBJECT: &str = "composite.json";
const DOCUMENT: &str = "user-data";
const FAILURE: &str = "failure.json";
const TERMINATING: &str = "terminating";
const STATUS: &str = "status.json";

/// Attempts to create a directory. Only a replica that starts at that very moment
/// removes an unfinished directory.
const CREATE_ATTEMPTS: usize = 3;

/// A live object: `composite.json` with the document put back in its place.
///
/// The document is stored only in `user-data`. So the engine reports as carried
/// what the agent really reads, also after a crash between the two files.
pub(super) struct Object(Value);

impl Object {
    /// `None` if there is no such directory.
    pub(super) fn read(directory: &Path) -> io::Result<Option<Self>> {
        let Some(content) = files::read_if_there(&directory.join(OBJECT))? else {
            return match fs::symlink_metadata(directory) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
                Ok(_) => Err(broken(directory, "there is no composite.json in it")),
            };
        };
        let mut object: Value = serde_json::from_slice(&content)
            .map_err(|_| broken(directory, "its composite.json is not JSON"))?;
        if object["metadata"]["uid"].as_str().is_none_or(str::is_empty) {
            return Err(broken(directory, "its composite.json has no uid"));
        }
        if let Some(document) = files::read_if_there(&directory.join(DOCUMENT))?
            && object["spec"].is_object()
        {
            let document = String::from_utf8(document)
                .map_err(|_| io::Error::other(format!("its {DOCUMENT} is not UTF-8")))?;
            object["spec"]["userData"] = Value::String(document);
        }
        Ok(Some(Self(object)))
    }

    pub(super) fn value(&self) -> &Value {
        &self.0
    }

    pub(super) fn uid(&self) -> &str {
        self.0["metadata"]["uid"].as_str().unwrap_or_default()
    }

    pub(super) fn provisioned_resource(&self) -> Option<&str> {
        self.0["metadata"]["labels"][LABEL_PROVISIONED_RESOURCE].as_str()
    }

    /// A newer claim token counts as a difference: once written, it keeps out a
    /// worker with an older one.
    fn differs_from(&self, rendered: &Value) -> bool {
        let mut rendered = rendered.clone();
        rendered["metadata"]["uid"] = json!(self.uid());
        self.0 != rendered
    }
}

/// A directory that does not say whose it is. Nobody but a person can tell whether it was
/// removed by half, so the text says how to finish that.
fn broken(directory: &Path, problem: &str) -> io::Error {
    let directory = directory.display();
    io::Error::other(format!(
        "{problem}; put the file back, or remove the whole directory {directory}, which ends its agent"
    ))
}

/// Creates a directory beside the final path and moves it there in one step. If
/// somebody else was faster, that is no error: the next step of an apply reads
/// what is there.
pub(super) fn create(
    directory: &Path,
    rendered: &Value,
    uid: &str,
    unfinished: &Path,
) -> io::Result<()> {
    let folder = directory.parent().unwrap_or(Path::new("/"));
    let mut attempt = 1;
    loop {
        files::create_folder(folder)?;
        match lay_out(unfinished, rendered, uid).and_then(|()| {
            renameat_with(CWD, unfinished, CWD, directory, RenameFlags::NOREPLACE)
                .map_err(io::Error::from)
        }) {
            Ok(()) => return files::sync_folder(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return files::remove_tree_if_there(unfinished);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < CREATE_ATTEMPTS => {
                files::remove_tree_if_there(unfinished)?;
                attempt += 1;
            }
            Err(error) => {
                let _ = files::remove_tree_if_there(unfinished);
                return Err(error);
            }
        }
    }
}

fn lay_out(unfinished: &Path, rendered: &Value, uid: &str) -> io::Result<()> {
    files::create_folder(unfinished)?;
    let (object, document) = split(rendered, uid);
    if let Some(document) = document {
        files::create(&unfinished.join(DOCUMENT), document.as_bytes())?;
    }
    files::create(&unfinished.join(OBJECT), object.as_bytes())?;
    files::sync_folder(unfinished)
}

/// The two files of an object.
fn split(rendered: &Value, uid: &str) -> (String, Option<String>) {
    let mut object = rendered.clone();
    object["metadata"]["uid"] = json!(uid);
    let document = object["spec"]
        .as_object_mut()
        .and_then(|spec| spec.remove("userData"))
        .and_then(|document| document.as_str().map(str::to_owned));
    (format!("{object:#}\n"), document)
}

/// The exclusive right to change a directory, among threads and replicas. An
/// `flock` belongs to the descriptor, so it has none of the traps of a record
/// lock, and the kernel drops it with the process.
pub(super) struct Locked {
    path: PathBuf,
    _handle: File,
}

impl Locked {
    /// Waits for the lock, which others have for milliseconds. `None` if the
    /// directory is absent, or was moved away during the wait.
    pub(super) fn lock(path: &Path) -> io::Result<Option<Self>> {
        let handle = match File::open(path) {
            Ok(handle) => handle,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        handle.lock()?;
        let ours = handle.metadata()?;
        match fs::symlink_metadata(path) {
            Ok(found) if (found.dev(), found.ino()) == (ours.dev(), ours.ino()) => {
                Ok(Some(Self { path: path.to_owned(), _handle: handle }))
            }
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn object(&self) -> io::Result<Option<Object>> {
        Object::read(&self.path)
    }

    /// Writes what is rendered; the uid stays. An object rendered without a
    /// document keeps the one it has.
    ///
    /// The document is written first: a crash before the object is written leaves
    /// a document that does not fit the token id in the object. That counts as
    /// "not in place", and the next apply repairs it.
    pub(super) fn update(&self, live: &Object, rendered: &Value) -> io::Result<()> {
        let mut rendered = rendered.clone();
        let carried = &live.value()["spec"]["userData"];
        if rendered["spec"]["userData"].is_null() && carried.is_string() {
            rendered["spec"]["userData"] = carried.clone();
        }
        if !live.differs_from(&rendered) {
            return Ok(());
        }
        let (object, document) = split(&rendered, live.uid());
        if let Some(document) = document
            && carried.as_str() != Some(&document)
        {
            files::replace(&self.path.join(DOCUMENT), document.as_bytes())?;
        }
        files::replace(&self.path.join(OBJECT), object.as_bytes())
    }

    /// Marks the object as terminating, and returns for how long it has been.
    pub(super) fn terminate(&self) -> io::Result<Duration> {
        let path = self.path.join(TERMINATING);
        let now = since_boot();
        let begun = files::read_if_there(&path)?
            .and_then(|content| String::from_utf8(content).ok()?.trim().parse().ok())
            .map(Duration::from_millis)
            // A later time is of an earlier boot, whose processes are gone:
            // the count starts over.
            .filter(|begun| *begun <= now);
        if let Some(begun) = begun {
            return Ok(now.saturating_sub(begun));
        }
        files::replace(&path, now.as_millis().to_string().as_bytes())?;
        Ok(Duration::ZERO)
    }
}

/// This clock advances while the machine sleeps and does not jump with the wall
/// clock.
fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

pub(super) fn is_terminating(directory: &Path) -> io::Result<bool> {
    directory.join(TERMINATING).try_exists()
}

/// The message of the failure marker, if there is one.
pub(super) fn failure(directory: &Path) -> io::Result<Option<String>> {
    let content = files::read_if_there(&directory.join(FAILURE))?;
    Ok(content.map(|content| {
        let marker: Value = serde_json::from_slice(&content).unwrap_or_default();
        marker["message"].as_str().unwrap_or("the node is marked as failed").to_owned()
    }))
}

/// The agent's own status; null if the file is missing or is not JSON.
pub(super) fn status(directory: &Path) -> Value {
    let content = files::read_if_there(&directory.join(STATUS)).ok().flatten();
    content.and_then(|content| serde_json::from_slice(&content).ok()).unwrap_or_default()
}
