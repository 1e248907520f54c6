//! The signing key of this installation: an ed25519 key pair in a file that
//! only its owner can read. Nodes learn the public half when they enrol.

use std::io::ErrorKind;
use std::path::Path;

use data_encoding::{BASE64, HEXLOWER};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use slipway_core::nodes::token::SecretHash;
use slipway_server::NodeSettings;

use crate::error::Error;
use crate::local::files::write_private;

/// Reads the key; the first start generates it.
pub(super) async fn load_or_create(
    path: &Path,
    public_url: String,
    authorities: Option<String>,
) -> Result<NodeSettings, Error> {
    let unusable = || Error::SigningKey { path: path.display().to_string() };
    let stored = match tokio::fs::read(path).await {
        Ok(stored) => stored,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let drawn =
                Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| unusable())?;
            // Atomically: a half written key would keep the installation from starting.
            write_private(path, drawn.as_ref()).map_err(Error::writing(path))?;
            drawn.as_ref().to_vec()
        }
        Err(source) => return Err(Error::reading(path)(source)),
    };
    let pair = Ed25519KeyPair::from_pkcs8(&stored).map_err(|_| unusable())?;
    let public = pair.public_key().as_ref();
    Ok(NodeSettings {
        public_url,
        authorities,
        signing_public_key: BASE64.encode(public),
        signing_key_id: HEXLOWER.encode(&SecretHash::of(public).as_bytes()[..8]),
    })
}
