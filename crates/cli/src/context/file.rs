//! The file of the contexts. Only its owner may read it, and a change replaces it as a
//! whole under a lock, so that two changes at once lose nothing and a crash leaves the
//! old file or the new one. No error shows any of its text, which has keys.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use slipway_core::secret::Secret;

use crate::error::Error;
use crate::exit::Exit;

/// Thousands of contexts; more is another file.
const LARGEST: u64 = 1 << 20;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The one that is used if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    pub(crate) server: String,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "key")]
    pub(crate) key: Option<Secret>,
    /// The authorities to trust instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    /// The project of resources if a command names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
    /// The data directory of the control plane that wrote it at its first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// The one place where a key is written in the clear.
mod key {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use slipway_core::secret::Secret;

    #[expect(clippy::ref_option, reason = "the signature that serde wants")]
    pub(super) fn serialize<S: Serializer>(
        key: &Option<Secret>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match key {
            Some(key) => serializer.serialize_some(key.expose()),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Secret>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(Secret::new))
    }
}

impl Context {
    /// What may be shown of its key: the part that is no secret.
    pub(crate) fn shown_key(&self) -> Option<String> {
        let key = self.key.as_ref()?.expose();
        Some(match key.rsplit_once('_') {
            Some((short, _)) if short.contains('_') => format!("{short}_…"),
            _ => "…".to_owned(),
        })
    }
}

/// Where the contexts are kept.
#[derive(Debug, Clone)]
pub(crate) struct ContextsFile {
    folder: PathBuf,
}

impl ContextsFile {
    /// In this folder, or in that of the user; `None` if the user has none.
    pub(crate) fn locate(
        given: Option<&Path>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let absolute = |name: &str| {
            environment(name).filter(|value| value.starts_with('/')).map(PathBuf::from)
        };
        let folder = given.map(Path::to_path_buf).or_else(|| {
            let base = absolute("XDG_CONFIG_HOME")
                .or_else(|| absolute("HOME").map(|home| home.join(".config")));
            base.map(|base| base.join("slipway"))
        })?;
        Some(Self { folder })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join("contexts.yaml")
    }

    /// The contexts; none if there is no file.
    pub(crate) fn read(&self) -> Result<Contexts, Error> {
        let path = self.path();
        let shown = path.display();
        let unreadable = |error: &io::Error| {
            fault("contexts_unreadable", format!("{shown} cannot be read: {error}"))
        };
        // Neither a link nor a pipe: what is read was written by `ContextsFile::change`.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let opened = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contexts::default()),
            Err(error) if path.is_symlink() => {
                return Err(fault(
                    "contexts_unsafe",
                    format!(
                        "{shown} is a symbolic link ({error}); put the file itself there, or name its folder with SLIPWAY_CONFIG_HOME"
                    ),
                ));
            }
            Err(error) => return Err(unreadable(&error)),
        };
        let found = file.metadata().map_err(|error| unreadable(&error))?;
        if !found.is_file() || found.len() > LARGEST {
            let problem = format!("{shown} is no file of contexts; move it away");
            return Err(fault("contexts_invalid", problem));
        }
        if found.mode() & 0o077 != 0 {
            let problem =
                format!("other users may read the keys in {shown}; run: chmod 600 {shown}");
            return Err(fault("contexts_unsafe", problem));
        }
        let mut text = String::new();
        file.take(LARGEST).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
        if text.trim().is_empty() {
            return Ok(Contexts::default());
        }
        serde_yaml_ng::from_str(&text).map_err(|error| {
            let line = error.location().map(|at| format!(" in line {}", at.line()));
            let line = line.unwrap_or_default();
            fault(
                "contexts_invalid",
                format!(
                    "{shown} is not understood{line}; repair it, or move it away and log in again"
                ),
            )
        })
    }

    /// Changes the contexts; what `change` refuses is not written.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Contexts) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let unwritable = |error: io::Error| {
            let shown = self.path().display().to_string();
            fault("contexts_unwritable", format!("{shown} cannot be written: {error}"))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(unwritable)?;
        let mode = std::fs::metadata(&self.folder).map_err(unwritable)?.mode();
        if mode & 0o022 != 0 {
            let shown = self.folder.display();
            return Err(fault(
                "contexts_unsafe",
                format!("other users may replace what is in {shown}; run: chmod 700 {shown}"),
            ));
        }
        // Dropped last: the lock ends with it.
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(self.folder.join("contexts.lock"))
            .map_err(unwritable)?;
        // Others hold it for milliseconds.
        lock.lock().map_err(unwritable)?;
        let mut contexts = self.read()?;
        let outcome = change(&mut contexts)?;
        self.write(&contexts).map_err(unwritable)?;
        Ok(outcome)
    }

    /// Atomic and durable. Only whoever has the lock writes, so one name is enough, and what
    /// a crash left under it is replaced.
    fn write(&self, contexts: &Contexts) -> io::Result<()> {
        let text = serde_yaml_ng::to_string(contexts).map_err(io::Error::other)?;
        let fresh = self.folder.join("contexts.yaml.new");
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, self.path())?;
        File::open(&self.folder)?.sync_all()
    }
}

/// An error about contexts; nothing was sent.
pub(super) fn fault(code: &'static str, message: String) -> Error {
    Error::Faults { code, message, errors: Vec::new(), exit: Exit::Usage }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn at(folder: &Path) -> ContextsFile {
        ContextsFile { folder: folder.join("slipway") }
    }

    fn context(server: &str) -> Context {
        Context {
            server: server.to_owned(),
            key: Some(Secret::new("slipway_abcdefgh_verysecret")),
            ca_file: None,
            project: None,
            data_dir: None,
        }
    }

    fn add(file: &ContextsFile, name: &str) -> Result<(), Error> {
        file.change(|all| {
            all.contexts.insert(name.to_owned(), context("http://x:1"));
            Ok(())
        })
    }

    fn refused(file: &ContextsFile, expected: &str) {
        let error = file.read().unwrap_err();
        let text = error.render(crate::arguments::Output::Table);
        assert!(text.starts_with(&format!("error[{expected}]")), "{text}");
        assert!(!text.contains("verysecret"), "{text}");
        assert_eq!(error.exit(), Exit::Usage);
        let error = add(file, "more").unwrap_err().render(crate::arguments::Output::Table);
        assert!(error.starts_with(&format!("error[{expected}]")), "nor is it replaced: {error}");
    }

    #[test]
    fn only_its_owner_reads_it() {
        let home = tempfile::tempdir().unwrap();
        let file = at(home.path());
        assert!(file.read().unwrap().contexts.is_empty(), "there is none yet");
        add(&file, "one").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file.folder), mode(&file.path())), (0o700, 0o600));
        let found = file.read().unwrap();
        assert_eq!(
            found.contexts["one"].key.as_ref().unwrap().expose(),
            "slipway_abcdefgh_verysecret"
        );
        assert_eq!(found.contexts["one"].shown_key().unwrap(), "slipway_abcdefgh_…");
        assert!(!format!("{found:?}").contains("verysecret"));

        for mode in [0o644, 0o640, 0o602] {
            std::fs::set_permissions(file.path(), PermissionsExt::from_mode(mode)).unwrap();
            refused(&file, "contexts_unsafe");
        }
        let text = file.read().unwrap_err().to_string();
        assert!(text.contains(&format!("chmod 600 {}", file.path().display())), "{text}");
        std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::set_permissions(&file.folder, PermissionsExt::from_mode(0o770)).unwrap();
        let text = add(&file, "two").unwrap_err().to_string();
        assert!(text.contains("chmod 700"), "{text}");
    }

    #[test]
    fn what_is_no_file_of_contexts_is_refused_and_kept() {
        let home = tempfile::tempdir().unwrap();
        let file = at(home.path());
        add(&file, "one").unwrap();
        let good = std::fs::read(file.path()).unwrap();
        for bad in [
            &b"contexts:\n  one:\n    server: [slipway_a_verysecret\n"[..],
            b"contexts:\n  one:\n    key: slipway_a_verysecret\n",
            b"contexts: slipway_a_verysecret\n",
            b"contexts:\n  one: {server: a, newer: slipway_a_verysecret}\n",
            b"listen = \"127.0.0.1:7700\"\n",
        ] {
            std::fs::write(file.path(), bad).unwrap();
            refused(&file, "contexts_invalid");
            assert_eq!(std::fs::read(file.path()).unwrap(), bad, "it is not touched");
        }
        std::fs::write(file.path(), b"\xff\xfe").unwrap();
        refused(&file, "contexts_unreadable");

        let elsewhere = home.path().join("elsewhere");
        std::fs::write(&elsewhere, good).unwrap();
        std::fs::remove_file(file.path()).unwrap();
        symlink(&elsewhere, file.path()).unwrap();
        refused(&file, "contexts_unsafe");
        std::fs::remove_file(file.path()).unwrap();
        std::fs::create_dir(file.path()).unwrap();
        refused(&file, "contexts_invalid");
    }

    #[test]
    fn changes_at_the_same_time_lose_nothing() {
        let home = tempfile::tempdir().unwrap();
        let file = at(home.path());
        // What a crash left of an earlier change.
        std::fs::create_dir(&file.folder).unwrap();
        std::fs::write(file.folder.join("contexts.yaml.new"), "half").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let file = &file;
                scope.spawn(move || {
                    for number in 0..5 {
                        add(file, &format!("c{thread}-{number}")).unwrap();
                        file.read().unwrap();
                    }
                });
            }
        });
        assert_eq!(file.read().unwrap().contexts.len(), 40);
    }

    #[test]
    fn the_folder_is_that_of_the_user_unless_it_is_named() {
        let located = |given: Option<&str>, set: &[(&str, &str)]| {
            let environment = |name: &str| {
                set.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned())
            };
            let file = ContextsFile::locate(given.map(Path::new), &environment);
            file.map(|file| file.path().display().to_string())
        };
        let home = ("HOME", "/h/ann");
        assert_eq!(located(Some("/c"), &[home]).unwrap(), "/c/contexts.yaml");
        assert_eq!(located(None, &[home]).unwrap(), "/h/ann/.config/slipway/contexts.yaml");
        let both = [home, ("XDG_CONFIG_HOME", "/x")];
        assert_eq!(located(None, &both).unwrap(), "/x/slipway/contexts.yaml");
        assert_eq!(located(None, &[("XDG_CONFIG_HOME", "relative")]), None);
        assert_eq!(located(None, &[]), None);
    }
}
