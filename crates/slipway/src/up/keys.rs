//! The signing key of this installation: an ed25519 key pair in a file that
//! only its owner can read. Nodes learn the public half when they enrol.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use data_encoding::{BASE64, HEXLOWER};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use slipway_core::nodes::token::SecretHash;
use slipway_server::NodeSettings;

use super::Error;

/// Reads the key; the first start generates it.
pub(super) async fn load_or_create(path: &Path) -> Result<NodeSettings, Error> {
    let unusable = || Error::SigningKey { path: path.display().to_string() };
    let stored = match tokio::fs::read(path).await {
        Ok(stored) => stored,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let drawn =
                Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| unusable())?;
            store(path, drawn.as_ref()).map_err(Error::io(format!("write {}", path.display())))?;
            drawn.as_ref().to_vec()
        }
        Err(source) => return Err(Error::io(format!("read {}", path.display()))(source)),
    };
    let pair = Ed25519KeyPair::from_pkcs8(&stored).map_err(|_| unusable())?;
    let public = pair.public_key().as_ref();
    Ok(NodeSettings {
        signing_public_key: BASE64.encode(public),
        signing_key_id: HEXLOWER.encode(&SecretHash::of(public).as_bytes()[..8]),
    })
}

/// Writes the key atomically: a half written one would keep the installation from
/// starting.
fn store(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(fresh, path)
}
