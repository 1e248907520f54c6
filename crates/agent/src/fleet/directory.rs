//! A folder of manifests: one file per Kubernetes object, for machines whose cluster
//! reads a folder (k3s, static manifests) and for trying Fleet without a cluster.
//!
//! | path | what it is |
//! |---|---|
//! | `*.yaml` | an object; its first line says whose it is |
//! | `.slipway/stacks/<id>` | the inventory of one stack |
//! | `.slipway/owner` | whose folder it is |
//! | `.slipway/lock` | record lock of the running agent |
//!
//! The content of a file is JSON, which is YAML: written as plain YAML, a text such as
//! `yes` would be a boolean to readers of YAML 1.1, as Kubernetes has one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::backend::{Backend, Contact, Fault, Found, Health, Owner, Removal, Stamp};
use super::error::Error;
use super::inventory::{Entry, Inventory, Reference, short_digest};
use super::manifest::{Manifest, reference};
use crate::files::{self, LifeLock};

/// What an object may contain is nobody else's business.
const MODE: u32 = 0o600;

/// The first words of a file of ours.
const HEADER: &str = "# slipway";

#[derive(Debug)]
pub(crate) struct DirectoryBackend {
    path: PathBuf,
    owner: Option<Owner>,
    _lock: LifeLock,
}

/// The content of `.slipway/owner`.
#[derive(Serialize, Deserialize)]
struct OwnerFile {
    installation: String,
    agent: String,
}

/// Whose a file is, by its first line.
enum Whose {
    /// There is none.
    Nobodys,
    Ours,
    /// Of another stack, agent or installation.
    Others,
    /// It does not say.
    Unmarked(Vec<u8>),
}

impl DirectoryBackend {
    /// Creates the folder if it is not there, and locks it.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let unusable = |source| Error::Folder { path: path.to_owned(), source };
        fs::create_dir_all(path.join(".slipway/stacks")).map_err(unusable)?;
        let path = path.canonicalize().map_err(unusable)?;
        let lock = LifeLock::take(&path.join(".slipway/lock")).map_err(unusable)?;
        let lock = lock.ok_or_else(|| Error::InUse { path: path.clone() })?;
        Ok(Self { path, owner: None, _lock: lock })
    }

    fn own(&self, name: &str) -> PathBuf {
        self.path.join(".slipway").join(name)
    }

    fn stack_file(&self, stack: &str) -> PathBuf {
        self.own("stacks").join(stack)
    }

    /// The file of an object. The digest tells apart what would have the same name.
    fn file(&self, reference: &Reference) -> PathBuf {
        let plain = |text: &str| -> String {
            let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
            text.chars().map(|c| safe(c.to_ascii_lowercase())).take(60).collect()
        };
        let namespace = reference.namespace.as_deref().map(|namespace| plain(namespace) + "_");
        let name = format!(
            "{}{}_{}_{}.yaml",
            namespace.unwrap_or_default(),
            plain(&reference.kind),
            plain(&reference.name),
            &short_digest(reference.key().as_bytes())[..8]
        );
        self.path.join(name)
    }

    /// What every file of a stack says about itself, as far as it stays the same.
    fn mark(&self, stack: &str) -> String {
        let owner = self.owner.as_ref();
        let (installation, agent) =
            owner.map_or(("", ""), |owner| (&owner.installation, &owner.agent));
        format!("{HEADER} installation={installation} agent={agent} stack={stack}")
    }

    fn content(&self, stamp: &Stamp<'_>, manifest: &Manifest) -> Result<String, Fault> {
        let body = serde_json::to_string_pretty(&manifest.body)
            .map_err(|error| Fault::Refused(format!("{}: {error}", manifest.reference)))?;
        let Stamp { stack, object_id, checksum } = stamp;
        Ok(format!("{} object={object_id} checksum={checksum}\n{body}\n", self.mark(stack)))
    }

    /// Whose file it is.
    fn whose(&self, stack: &str, reference: &Reference) -> Result<Whose, Fault> {
        let path = self.file(reference);
        let content = files::read_if_there(&path).map_err(fault("read", &path))?;
        let Some(content) = content else { return Ok(Whose::Nobodys) };
        let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let (line, mark) = (String::from_utf8_lossy(line), self.mark(stack) + " ");
        Ok(match (line.starts_with(&mark), line.starts_with(HEADER)) {
            (true, _) => Whose::Ours,
            (false, true) => Whose::Others,
            (false, false) => Whose::Unmarked(content),
        })
    }

    /// Whether the file of an object may be written.
    fn may_write(
        &self,
        stack: &str,
        manifest: &Manifest,
        known: &[Reference],
    ) -> Result<bool, Fault> {
        let key = manifest.reference.key();
        let is_known = || known.iter().any(|one| one.digest.is_some() && one.key() == key);
        let is_equal = |content: &[u8]| {
            serde_json::from_slice::<Value>(content).is_ok_and(|body| body == manifest.body)
        };
        Ok(match self.whose(stack, &manifest.reference)? {
            Whose::Nobodys | Whose::Ours => true,
            Whose::Others => false,
            // Somebody rewrote what we wrote, or it is what we let go of.
            Whose::Unmarked(content) => is_known() || is_equal(&content),
        })
    }

    fn foreign(&self, reference: &Reference) -> Fault {
        Fault::Refused(format!(
            "{reference}: the file {} is not of this stack of this agent; remove it, or take the object out of one of the stacks; nothing was applied",
            self.file(reference).display()
        ))
    }
}

fn fault<'a>(action: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> Fault + 'a {
    move |error| Fault::Unreachable(format!("cannot {action} {}: {error}", path.display()))
}

impl Backend for DirectoryBackend {
    const HAS_CLUSTER: bool = false;
    const DRIFT_CHECKS: usize = 64;

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    async fn contact(&mut self) -> Result<Contact, Fault> {
        let stacks = self.own("stacks");
        fs::metadata(&stacks).map_err(fault("read", &stacks))?;
        Ok(Contact { latency: None, is_new: self.owner.is_none() })
    }

    async fn load(&mut self, owner: &Owner) -> Result<Inventory, Fault> {
        let path = self.own("owner");
        let known = files::read_if_there(&path).map_err(fault("read", &path))?;
        let known = known.map(|content| {
            serde_json::from_slice::<OwnerFile>(&content)
                .map_err(|error| Fault::Foreign(format!("{} is damaged: {error}", path.display())))
        });
        match known.transpose()? {
            Some(known) if known.agent != owner.agent => {
                return Err(Fault::Foreign(format!(
                    "it is the folder of the agent {}",
                    known.agent
                )));
            }
            // The agent is known by its id; a server that learnt to name its installation
            // is the same one.
            Some(known) => {
                let owner = Owner { installation: known.installation, agent: known.agent };
                self.owner = Some(owner);
            }
            None => {
                let content = OwnerFile {
                    installation: owner.installation.clone(),
                    agent: owner.agent.clone(),
                };
                let content = serde_json::json!(content).to_string();
                files::replace(&path, content.as_bytes(), MODE).map_err(fault("write", &path))?;
                self.owner = Some(owner.clone());
            }
        }
        let (stacks, mut inventory) = (self.own("stacks"), Inventory::new());
        for file in fs::read_dir(&stacks).map_err(fault("read", &stacks))? {
            let path = file.map_err(fault("read", &stacks))?.path();
            let stack = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Left by a crash in the middle of a write.
            if stack.ends_with(".new") {
                continue;
            }
            let content = fs::read(&path).map_err(fault("read", &path))?;
            let entry: Entry = serde_json::from_slice(&content).map_err(|error| {
                Fault::Unreachable(format!(
                    "the inventory {} is damaged: {error}; remove it, and the stack is applied anew",
                    path.display()
                ))
            })?;
            inventory.insert(stack, entry);
        }
        Ok(inventory)
    }

    async fn save(&mut self, stack: &str, entry: &Entry) -> Result<(), Fault> {
        let path = self.stack_file(stack);
        let content = serde_json::json!(entry).to_string();
        files::replace(&path, content.as_bytes(), MODE).map_err(fault("write", &path))
    }

    async fn forget(&mut self, stack: &str) -> Result<(), Fault> {
        let path = self.stack_file(stack);
        files::remove_if_there(&path)
            .and_then(|()| files::sync_folder_of(&path))
            .map_err(fault("remove", &path))
    }

    async fn resolve(&mut self, manifests: Vec<Manifest>) -> Result<Vec<Manifest>, Fault> {
        Ok(manifests)
    }

    /// The contents of the files.
    type Prepared = Vec<String>;

    async fn prepare(
        &mut self,
        stamp: &Stamp<'_>,
        manifests: &[Manifest],
        known: &[Reference],
    ) -> Result<Vec<String>, Fault> {
        let mut contents = Vec::with_capacity(manifests.len());
        for manifest in manifests {
            if !self.may_write(stamp.stack, manifest, known)? {
                return Err(self.foreign(&manifest.reference));
            }
            contents.push(self.content(stamp, manifest)?);
        }
        Ok(contents)
    }

    async fn apply(
        &mut self,
        _stamp: &Stamp<'_>,
        manifests: &[Manifest],
        _known: &[Reference],
        prepared: Vec<String>,
    ) -> Result<Vec<Reference>, Fault> {
        let mut references = Vec::with_capacity(manifests.len());
        let temporary = self.own("new");
        for (manifest, content) in manifests.iter().zip(prepared) {
            let path = self.file(&manifest.reference);
            let content = content.as_bytes();
            files::replace_through(&temporary, &path, content, MODE)
                .map_err(fault("write", &path))?;
            let digest = Some(short_digest(content));
            references.push(Reference { digest, is_stale: false, ..manifest.reference.clone() });
        }
        Ok(references)
    }

    /// By the first lines of all files.
    async fn find(&mut self, stack: &str) -> Result<Found, Fault> {
        let (mut found, mark) = (Found::default(), self.mark(stack) + " ");
        for file in fs::read_dir(&self.path).map_err(fault("read", &self.path))? {
            let path = file.map_err(fault("read", &self.path))?.path();
            if path.is_dir() {
                continue;
            }
            let content = files::read_if_there(&path).map_err(fault("read", &path))?;
            let Some(content) = content.filter(|text| text.starts_with(mark.as_bytes())) else {
                continue;
            };
            let end = content.iter().position(|byte| *byte == b'\n').unwrap_or(content.len());
            let body = serde_json::from_slice::<Value>(&content[end..]);
            match body.ok().and_then(|body| reference(&body).ok()) {
                Some(reference) if self.file(&reference) == path => found.references.push(reference),
                _ => found.unlisted.push(format!(
                    "the file {} says that it is of this stack, and is not as this agent wrote it; remove it",
                    path.display()
                )),
            }
        }
        Ok(found)
    }

    async fn remove(&mut self, stack: &str, references: &[Reference]) -> Result<Removal, Fault> {
        let mut removal = Removal::default();
        for reference in references {
            let path = self.file(reference);
            match self.whose(stack, reference)? {
                Whose::Nobodys => {}
                Whose::Ours => {
                    files::remove_if_there(&path).map_err(fault("remove", &path))?;
                }
                Whose::Others | Whose::Unmarked(_) => removal.notes.push(format!(
                    "{reference} was left alone: the file {} is not of this stack",
                    path.display()
                )),
            }
        }
        let any = self.path.join("any");
        files::sync_folder_of(&any).map_err(fault("remove files in", &self.path))?;
        Ok(removal)
    }

    async fn release(&mut self, stack: &str, references: &[Reference]) -> Result<(), Fault> {
        for reference in references {
            if !matches!(self.whose(stack, reference)?, Whose::Ours) {
                continue;
            }
            let path = self.file(reference);
            let content = fs::read(&path).map_err(fault("read", &path))?;
            let end = content.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            files::replace_through(&self.own("new"), &path, &content[end..], MODE)
                .map_err(fault("write", &path))?;
        }
        Ok(())
    }

    async fn drift(&mut self, reference: &Reference) -> Result<Option<String>, Fault> {
        let path = self.file(reference);
        let content = files::read_if_there(&path).map_err(fault("read", &path))?;
        Ok(match content {
            None => Some("was removed".to_owned()),
            Some(content) if reference.digest.as_ref() != Some(&short_digest(&content)) => {
                Some("was changed".to_owned())
            }
            Some(_) => None,
        })
    }

    fn has_health(&self, _reference: &Reference) -> bool {
        false
    }

    async fn health(&mut self, _references: &[Reference]) -> Result<Health, Fault> {
        Ok(Health::default())
    }
}
