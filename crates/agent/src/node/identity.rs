//! The identity of a node: its key pair, and after enrolment its id and node key.
//!
//! Order on disk, each step synced before the next: key pair → register →
//! identity → token removed. Whenever a crash happens, the next start either
//! registers again with the same public key (which the server accepts again) or
//! finds itself enrolled.

use data_encoding::BASE64;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde::{Deserialize, Serialize};

use super::directory::{Directory, read_if_there};
use super::error::Error;
use super::machine::BootMoment;
use crate::secret::StoredSecret;

const KEY: &str = "key.pk8";
const IDENTITY: &str = "identity.json";
const LEAVING: &str = "leaving.json";
const DRAINED: &str = "drained.json";

/// The public key as it is sent; the first call creates the key pair.
pub(crate) fn public_key(directory: &Directory) -> Result<String, Error> {
    let path = directory.state(KEY);
    let document = if let Some(document) = read_if_there(&path)? {
        document
    } else {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|error| Error::Random(error.to_string()))?;
        state_folder(directory)?;
        directory.write_atomically(&path, document.as_ref(), 0o600)?;
        document.as_ref().to_vec()
    };
    let pair = Ed25519KeyPair::from_pkcs8(&document)
        .map_err(|error| Error::State { path, reason: error.to_string() })?;
    Ok(BASE64.encode(pair.public_key().as_ref()))
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) node_id: String,
    pub(crate) node_secret_key: StoredSecret,
    pub(crate) enrolled_at: BootMoment,
}

impl Identity {
    pub(crate) fn load(directory: &Directory) -> Result<Option<Self>, Error> {
        load(directory, IDENTITY)
    }

    pub(crate) fn store(&self, directory: &Directory) -> Result<(), Error> {
        store(directory, IDENTITY, self)
    }
}

/// The drain that this agent has finished its work for. Written to disk before
/// the acknowledgement is sent: from then on the node may be deleted at any
/// moment, and this file shows when its work was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Leaving<'a> {
    pub(crate) drain_id: &'a str,
}

impl Leaving<'_> {
    pub(crate) fn store(&self, directory: &Directory) -> Result<(), Error> {
        store(directory, LEAVING, self)
    }
}

/// The drain that the server has accepted as acknowledged. Kept so that a
/// restarted agent knows why its key is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drained {
    pub(crate) drain_id: String,
}

impl Drained {
    pub(crate) fn load(directory: &Directory) -> Result<Option<Self>, Error> {
        load(directory, DRAINED)
    }

    pub(crate) fn store(&self, directory: &Directory) -> Result<(), Error> {
        store(directory, DRAINED, self)
    }
}

fn load<T: for<'a> Deserialize<'a>>(directory: &Directory, name: &str) -> Result<Option<T>, Error> {
    let path = directory.state(name);
    let Some(content) = read_if_there(&path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&content).map(Some).map_err(|error| {
        // Only the position: the parser's message may quote the key.
        let reason = format!("not understood at line {}, column {}", error.line(), error.column());
        Error::State { path, reason }
    })
}

fn store<T: Serialize>(directory: &Directory, name: &str, value: &T) -> Result<(), Error> {
    let path = directory.state(name);
    let content = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::State { path: path.clone(), reason: error.to_string() })?;
    state_folder(directory)?;
    directory.write_atomically(&path, &content, 0o600)
}

fn state_folder(directory: &Directory) -> Result<(), Error> {
    directory.create_folder(&directory.state(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_has_32_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        let first = public_key(&directory).unwrap();
        assert_eq!(public_key(&directory).unwrap(), first);
        assert_eq!(BASE64.decode(first.as_bytes()).unwrap().len(), 32);
    }

    #[test]
    fn a_damaged_identity_is_named_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        directory
            .write_atomically(
                &directory.state(IDENTITY),
                br#"{"node_id": 7, "nsk_key": "x"}"#,
                0o600,
            )
            .unwrap();
        let message = Identity::load(&directory).unwrap_err().to_string();
        assert!(message.contains("identity.json"), "{message}");
        assert!(!message.contains("nsk_key"), "{message}");
    }
}
