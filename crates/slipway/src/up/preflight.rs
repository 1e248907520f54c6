//! Checks before anything is created, so that a start that cannot succeed leaves
//! no database and no key behind. `slipway config check` does the same checks.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::Access;
use slipway_app::access::authenticate::check_admin_key;
use slipway_server::Tls;
use slipway_store::{DirectoryError, StoreConfig};

use super::listeners;
use crate::config::Config;
use crate::error::Error;

/// What the settings name, read.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(super) tls: Option<Arc<Tls>>,
    /// The authorities that nodes are told to trust.
    pub(super) authorities: Option<String>,
}

/// Refuses every setting that a start would refuse, whoever else is running: ports and
/// locks are left out, and so is whether the database answers.
pub(crate) fn check(config: &Config) -> Result<Checked, Error> {
    let tls = config.tls.clone().map(Tls::open).transpose()?;
    let authorities = listeners::authorities(config)?;
    StoreConfig::new(config.database_url.expose()).check()?;
    if let Some(key) = &config.admin_key {
        check_admin_key(key).map_err(slipway_app::Error::from)?;
    }
    let (data, root) = (&config.data_dir, &config.substrate_root);
    usable(data).map_err(|source| DirectoryError::Unusable { directory: data.clone(), source })?;
    if !root.starts_with(data) {
        usable(root).map_err(|source| Error::FolderUnusable {
            key: "substrate_root",
            path: root.display().to_string(),
            source,
        })?;
    }
    Ok(Checked { tls, authorities })
}

/// Checks that the path is a writable folder, or can be created. This is no
/// guarantee: anything may happen between this check and the creation.
fn usable(path: &Path) -> io::Result<()> {
    let mut nearest = path;
    loop {
        match std::fs::metadata(nearest) {
            Ok(found) if !found.is_dir() => return Err(io::ErrorKind::NotADirectory.into()),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => match nearest.parent() {
                Some(parent) => nearest = parent,
                None => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
    Ok(rustix::fs::access(nearest, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_usable_if_it_is_there_or_can_be_made() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        usable(folder.path()).unwrap();
        usable(&folder.path().join("a/b/c")).unwrap();
        for wrong in ["file", "file/a"] {
            assert!(usable(&folder.path().join(wrong)).is_err(), "{wrong}");
        }
    }
}
