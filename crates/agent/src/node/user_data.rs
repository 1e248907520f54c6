//! The cloud-config document. The agent acts as cloud-init: it writes the
//! document's files below `rootfs/`. It does not run `runcmd`, which would start
//! this very process.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use ring::digest;
use serde::Deserialize;

use super::directory::{Directory, read_if_there, remove_if_there};
use super::error::Error;
use crate::secret::StoredSecret;

pub(crate) const CONFIG_PATH: &str = "/etc/plexd/config.yaml";
pub(crate) const TOKEN_PATH: &str = "/etc/plexd/bootstrap-token";

/// The first line, by which cloud-init recognises this format.
const HEADER: &str = "#cloud-config";

/// cloud-init's own default.
const DEFAULT_MODE: u32 = 0o644;

/// How often the agent checks for a new document. A person waits for it, and
/// reading one small file costs nothing.
const POLL: Duration = Duration::from_millis(250);

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    write_files: Vec<WriteFile>,
}

#[derive(Deserialize)]
struct WriteFile {
    path: PathBuf,
    permissions: Option<String>,
    #[serde(default)]
    content: String,
    encoding: Option<String>,
}

/// One reading of the document. Has no `Debug`, because it contains the token.
pub(crate) struct UserData {
    fingerprint: Vec<u8>,
    files: Vec<WriteFile>,
}

impl UserData {
    /// `None` if there is no document: a node without one has no server to enrol
    /// with, and just runs.
    pub(crate) fn read(directory: &Directory) -> Result<Option<Self>, Error> {
        let Some(content) = read_if_there(&directory.user_data())? else {
            return Ok(None);
        };
        let files = parse(&content).map_err(|reason| unusable(directory, reason))?;
        Ok(Some(Self { fingerprint: fingerprint(&content), files }))
    }

    /// Returns once there is a document.
    pub(crate) async fn appeared(directory: &Directory) {
        while !directory.user_data().exists() {
            tokio::time::sleep(POLL).await;
        }
    }

    /// Writes the files of the document, without the token if the node is
    /// enrolled. Always removes an older token: it may be spent or revoked.
    pub(crate) fn install(&self, directory: &Directory, enrolled: bool) -> Result<(), Error> {
        token_forget(directory)?;
        for file in &self.files {
            if enrolled && file.path == Path::new(TOKEN_PATH) {
                continue;
            }
            let mode = mode(file).map_err(|reason| unusable(directory, reason))?;
            let target = directory.rootfs(&file.path);
            directory.write_atomically(&target, file.content.as_bytes(), mode)?;
        }
        Ok(())
    }

    /// Returns once the document in the directory is another one. A document that
    /// cannot be read at the moment is no change.
    pub(crate) async fn changed(&self, directory: &Directory) {
        loop {
            tokio::time::sleep(POLL).await;
            if let Ok(content) = fs::read(directory.user_data())
                && fingerprint(&content) != self.fingerprint
            {
                return;
            }
        }
    }
}

pub(crate) fn token_read(directory: &Directory) -> Result<Option<StoredSecret>, Error> {
    let path = directory.rootfs(Path::new(TOKEN_PATH));
    let content = read_if_there(&path)?;
    let token = content.map(|content| String::from_utf8_lossy(&content).trim().to_owned());
    Ok(token.filter(|token| !token.is_empty()).map(StoredSecret::new))
}

pub(crate) fn token_forget(directory: &Directory) -> Result<(), Error> {
    remove_if_there(&directory.rootfs(Path::new(TOKEN_PATH)))
}

fn unusable(directory: &Directory, reason: String) -> Error {
    Error::UserData { directory: directory.path().to_owned(), reason }
}

fn fingerprint(content: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, content).as_ref().to_vec()
}

fn parse(content: &[u8]) -> Result<Vec<WriteFile>, String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8".to_owned())?;
    if text.lines().next().map(str::trim_end) != Some(HEADER) {
        return Err(format!("its first line is not {HEADER}"));
    }
    let document: Document =
        serde_yaml_ng::from_str(text).map_err(|error| match error.location() {
            // The parser's own message may quote a value.
            Some(place) => {
                format!(
                    "it is not a cloud-config document at line {}, column {}",
                    place.line(),
                    place.column()
                )
            }
            None => "it is not a cloud-config document".to_owned(),
        })?;
    for file in &document.write_files {
        check(file)?;
    }
    Ok(document.write_files)
}

fn check(file: &WriteFile) -> Result<(), String> {
    let shown = file.path.display();
    let mut components = file.path.components();
    let absolute = components.next() == Some(Component::RootDir);
    if !absolute
        || !components.all(|part| matches!(part, Component::Normal(_)))
        || file.path == Path::new("/")
    {
        return Err(format!("the path {shown} in write_files is not absolute and plain"));
    }
    match file.encoding.as_deref() {
        None | Some("text/plain") => {}
        Some(encoding) => {
            return Err(format!("{shown} has the encoding {encoding}, only text/plain is known"));
        }
    }
    mode(file).map(|_| ())
}

fn mode(file: &WriteFile) -> Result<u32, String> {
    let Some(text) = &file.permissions else {
        return Ok(DEFAULT_MODE);
    };
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err(format!(
            "the permissions of {} are not octal digits up to 0777",
            file.path.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(document: &str) -> String {
        match parse(document.as_bytes()) {
            Ok(_) => panic!("accepted: {document}"),
            Err(reason) => reason,
        }
    }

    #[test]
    fn a_document_with_other_keys_is_read() {
        let files = parse(
            b"#cloud-config\nhostname: a\nwrite_files:\n- path: /etc/a\n  permissions: '0600'\n  owner: root:root\n  content: |\n    one\n    two\nruncmd:\n- [plexd, up]\n",
        );
        let files = files.unwrap();
        assert_eq!(files[0].content, "one\ntwo\n");
        assert_eq!(mode(&files[0]).unwrap(), 0o600);
    }

    #[test]
    fn a_path_that_leaves_the_root_is_refused() {
        for path in ["etc/a", "/etc/../../a", "/"] {
            let reason = refused(&format!("#cloud-config\nwrite_files:\n- path: {path}\n"));
            assert!(reason.contains("not absolute and plain"), "{path}: {reason}");
        }
    }

    #[test]
    fn what_is_refused_is_named_and_no_content_is_quoted() {
        assert!(refused("{}").contains("first line"));
        let reason = refused("#cloud-config\nwrite_files: psb_live_secret\n");
        assert!(reason.contains("line 2"), "{reason}");
        assert!(!reason.contains("psb_live"), "{reason}");
        let reason =
            refused("#cloud-config\nwrite_files:\n- {path: /a, encoding: b64, content: eA==}\n");
        assert!(reason.contains("b64"), "{reason}");
        for permissions in ["rw", "7777", "-1"] {
            let document = format!(
                "#cloud-config\nwrite_files:\n- {{path: /a, permissions: '{permissions}'}}\n"
            );
            assert!(refused(&document).contains("octal"), "{permissions}");
        }
    }
}
