//! The substrate root: a folder with an identity, shared by the replicas of
//! one host.
//!
//! `substrate.uid` identifies a root. A root that is not mounted, or a fresh one
//! in place of a lost one, looks just like a root whose nodes are all gone. Only
//! the uid tells them apart; without it the engine reports nothing as absent.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use slipway_core::deletion::leak::ObjectRef;

use super::{files, high_water_mark};

const UID: &str = "substrate.uid";
/// The owner of the root: the id of the installation that opened it first.
const OWNER: &str = "substrate.installation";
/// Retired directories, which only have to be removed.
const GONE: &str = ".gone";
/// Prefix of directories that are still being created.
const UNFINISHED: &str = ".new-";

#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    uid: String,
}

impl Root {
    /// Opens the root; the first start creates it. If several processes create it
    /// at once, one of them sets the uid.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        files::create_folder(path)?;
        // Agents run in another working directory.
        let path = path.canonicalize()?;
        let uid = written_once(&path, UID, &random_uid()?)?;
        Ok(Self { path, uid })
    }

    /// Takes the root for this installation, unless it has an owner, and returns
    /// the owner. Two installations must not share a root: each would take the
    /// other's nodes for leaks.
    pub(super) fn take(&self, installation: &str) -> io::Result<String> {
        written_once(&self.path, OWNER, installation)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    /// Reads the identity of the root that is there now.
    pub(super) fn observe(&self) -> RootView<'_> {
        RootView { root: self, found: files::read_if_there(&self.path.join(UID)) }
    }

    /// The directory of the node of this name. `None` for names that could lead
    /// out of the root or collide with its own entries.
    pub(super) fn node(&self, namespace: &str, name: &str) -> Option<PathBuf> {
        let plain =
            |text: &str| !text.is_empty() && !text.starts_with('.') && !text.contains(['/', '\0']);
        let ours =
            [UID, OWNER].contains(&namespace) || namespace.starts_with(high_water_mark::PREFIX);
        (plain(namespace) && plain(name) && !ours).then(|| self.path.join(namespace).join(name))
    }

    /// References to all node directories after `after`, in order, without
    /// unfinished and retired ones.
    pub(super) fn objects(&self, after: Option<&ObjectRef>) -> io::Result<Vec<ObjectRef>> {
        let mut objects = Vec::new();
        for namespace in folders(&self.path)? {
            if after.is_some_and(|after| namespace < after.namespace) {
                continue;
            }
            let names = match folders(&self.path.join(&namespace)) {
                // Removed since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                names => names?,
            };
            let here =
                names.into_iter().map(|name| ObjectRef { namespace: namespace.clone(), name });
            objects.extend(here.filter(|object_ref| after.is_none_or(|after| object_ref > after)));
        }
        objects.sort_unstable();
        Ok(objects)
    }

    /// Removes what crashed processes left: unfinished and retired directories.
    /// If another replica is creating a directory right now, it finds its
    /// unfinished directory gone and starts over.
    pub(super) fn tidy(&self) -> io::Result<()> {
        for namespace in fs::read_dir(&self.path)? {
            let namespace = namespace?;
            if !namespace.file_type()?.is_dir() {
                continue;
            }
            for entry in fs::read_dir(namespace.path())? {
                let entry = entry?;
                if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                    files::remove_tree_if_there(&entry.path())?;
                }
            }
        }
        self.retired_remove()
    }

    /// Moves a node directory to `.gone`, in one step.
    pub(super) fn node_retire(&self, node: &Path, uid: &str) -> io::Result<()> {
        files::create_folder(&self.path.join(GONE))?;
        fs::rename(node, self.path.join(GONE).join(uid))?;
        if let Some(folder) = node.parent() {
            files::sync_folder(folder)?;
        }
        Ok(())
    }

    /// Removes every retired directory, also those of a crashed process.
    pub(super) fn retired_remove(&self) -> io::Result<()> {
        let entries = match fs::read_dir(self.path.join(GONE)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let path = entry?.path();
            files::remove_tree_if_there(&path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
        }
        Ok(())
    }
}

/// One reading of the identity of a root, used for a batch of addresses.
#[derive(Debug)]
pub(super) struct RootView<'a> {
    root: &'a Root,
    found: io::Result<Option<Vec<u8>>>,
}

impl RootView<'_> {
    /// The reason why nothing can be said about what is below the root.
    /// `recorded` is the uid that the caller recorded of it; without one it has
    /// to be the root that was opened.
    pub(super) fn doubt(&self, recorded: Option<&str>) -> Option<String> {
        let shown = self.root.path.display();
        let expected = recorded.unwrap_or(&self.root.uid);
        match &self.found {
            Ok(Some(found)) if found.trim_ascii() == expected.as_bytes() => None,
            Ok(Some(found)) => Some(format!(
                "the substrate root {shown} has the uid {} and not {expected}: another directory is in use under this path",
                String::from_utf8_lossy(found.trim_ascii()),
            )),
            Ok(None) => {
                Some(format!("the substrate root {shown} is not there, or has lost its {UID}"))
            }
            Err(error) => Some(format!("the substrate root {shown} cannot be read: {error}")),
        }
    }
}

/// The subfolders that may be ours. A name that is not UTF-8 or begins with a
/// dot is not ours.
fn folders(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if let Some(name) = entry.file_name().to_str()
            && !name.starts_with('.')
            && entry.file_type()?.is_dir()
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Writes a small file unless it exists, and returns its content. If several
/// processes write at once, one wins and all read the same.
fn written_once(folder: &Path, name: &str, content: &str) -> io::Result<String> {
    let file = folder.join(name);
    if files::read_if_there(&file)?.is_none() {
        let temporary = folder.join(format!("{UNFINISHED}{}", random_uid()?));
        files::create(&temporary, content.as_bytes())?;
        // A link fails where a rename would replace the winner's file.
        let linked = fs::hard_link(&temporary, &file);
        files::remove_if_there(&temporary)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => files::sync_folder(folder)?,
        }
    }
    let found = fs::read_to_string(&file)?.trim().to_owned();
    if found.is_empty() {
        return Err(io::Error::other(format!("{} is empty", file.display())));
    }
    Ok(found)
}

/// The path of an unfinished directory, beside that of the node.
pub(super) fn unfinished(node: &Path, uid: &str) -> PathBuf {
    node.with_file_name(format!("{UNFINISHED}{uid}"))
}

/// 128 random bits as text, for identities that outlive this process.
pub(super) fn random_uid() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_keeps_its_uid_and_notices_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root");
        let root = Root::open(&path).unwrap();
        assert_eq!(Root::open(&path).unwrap().uid(), root.uid());
        assert_eq!(root.observe().doubt(None), None);
        assert_eq!(root.observe().doubt(Some(root.uid())), None);
        assert!(
            root.observe().doubt(Some("recorded long ago")).unwrap().contains("recorded long ago")
        );

        fs::write(path.join(UID), "another").unwrap();
        assert!(
            root.observe()
                .doubt(None)
                .unwrap()
                .contains("another directory is in use under this path")
        );
        fs::remove_dir_all(&path).unwrap();
        assert!(root.observe().doubt(None).unwrap().contains("not there"));
    }

    #[test]
    fn concurrent_first_starts_agree_on_one_uid() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root");
        let uids: Vec<String> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| Root::open(&path).unwrap().uid().to_owned()))
                .collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert!(uids.windows(2).all(|pair| pair[0] == pair[1]), "{uids:?}");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "only the uid file stays");
    }

    #[test]
    fn a_name_never_leads_out_of_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        for (namespace, name) in [
            ("", "a"),
            ("a", ""),
            ("..", "a"),
            ("a", ".."),
            ("a/b", "c"),
            ("a", "b/c"),
            (".gone", "a"),
            (UID, "a"),
            (OWNER, "a"),
            ("slipway-high-water-mark-1", "a"),
        ] {
            assert_eq!(root.node(namespace, name), None, "{namespace} {name}");
        }
        assert!(root.node("project-1", "edge-1").is_some());
    }
}
