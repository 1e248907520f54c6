//! The name under which this process claims rows. The data directory keeps it,
//! and a lock ensures that one process at a time has it. So a process that starts
//! knows that the previous one of this name is dead. Where the actions died with it, on
//! the local engine, the process takes back the claims at once; requests that were sent
//! to a cluster may outlive it, and claims there lapse with their leases.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use slipway_app::ports::Entropy;
use slipway_store::{DirectoryError, OpenError};

use crate::adapters::SystemEntropy;
use crate::error::Error;

/// The name, locked until this is dropped.
#[derive(Debug)]
pub(super) struct Worker {
    name: String,
    _lock: File,
}

impl Worker {
    /// Takes the name of this data directory; the first start creates both.
    pub(super) fn take(data_dir: &Path) -> Result<Self, Error> {
        let failed = || {
            |source| {
                let directory = data_dir.to_path_buf();
                Error::from(OpenError::from(DirectoryError::Unusable { directory, source }))
            }
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(data_dir).map_err(failed())?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(data_dir.join("worker"))
            .map_err(failed())?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let directory = data_dir.to_path_buf();
                return Err(
                    OpenError::from(DirectoryError::DataDirectoryInUse { directory }).into()
                );
            }
            Err(errno) => return Err(failed()(errno.into())),
        }
        let mut name = String::new();
        file.read_to_string(&mut name).map_err(failed())?;
        // Empty at the first start, or after a crash in the middle of it.
        if name.len() != 36 {
            name = SystemEntropy.uuid().to_string();
            file.set_len(0).map_err(failed())?;
            std::io::Seek::rewind(&mut file).map_err(failed())?;
            file.write_all(name.as_bytes()).map_err(failed())?;
            file.sync_all().map_err(failed())?;
        }
        Ok(Self { name, _lock: file })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_has_the_name_and_the_next_one_gets_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("data");
        let first = Worker::take(&data_dir).unwrap();
        assert_eq!(Worker::take(&data_dir).unwrap_err().code(), "data_directory_in_use");
        let name = first.name().to_owned();
        drop(first);
        assert_eq!(Worker::take(&data_dir).unwrap().name(), name);
    }
}
