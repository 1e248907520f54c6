//! The rules about what protects the listener.

use std::net::SocketAddr;
use std::path::Path;

use slipway_server::TlsFiles;

use super::InvalidConfig;
use super::parse::absolute;

/// Certificate and key belong together.
pub(super) fn tls_files(
    certificate: Option<&Path>,
    key: Option<&Path>,
) -> Result<Option<TlsFiles>, InvalidConfig> {
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles {
            certificate: absolute("tls_cert", certificate)?,
            key: absolute("tls_key", key)?,
        })),
        (Some(_), None) => Err(InvalidConfig::new("tls_key", "must be given with `tls_cert`")),
        (None, Some(_)) => Err(InvalidConfig::new("tls_cert", "must be given with `tls_key`")),
    }
}

/// Keys and tokens are in headers and bodies: outside this machine they must not
/// be sent in the clear.
pub(super) fn check_protected(listen: SocketAddr, protected: bool) -> Result<(), InvalidConfig> {
    if protected || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(InvalidConfig {
        code: "listen_unprotected",
        ..InvalidConfig::new(
            "listen",
            format!(
                "is {listen}, which other machines can reach, and keys and tokens would be sent \
                 in the clear; give `tls_cert` and `tls_key`, or `behind_proxy` if a proxy in \
                 front ends TLS, or listen on 127.0.0.1"
            ),
        )
    })
}
