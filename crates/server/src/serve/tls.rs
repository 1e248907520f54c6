//! TLS with a certificate and a key from two files, which are read again while
//! the server runs. TLS 1.2 and 1.3, HTTP/1.1.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use slipway_core::time::Timestamp;
use tokio_rustls::TlsAcceptor;

use super::validity::not_after;

/// How often the files are read, which costs next to nothing.
const POLL: Duration = Duration::from_secs(2);

/// The files of certificate and key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those between it and the authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Why certificate and key cannot be used. The text never has their content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    #[error("{} cannot be read: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{} has no certificate in PEM", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{} has no private key in PEM", path.display())]
    NoKey { path: PathBuf },
    #[error(
        "the key in {} is not that of the certificate in {}",
        files.key.display(),
        files.certificate.display()
    )]
    Mismatch { files: TlsFiles },
    #[error("the certificate in {} cannot be used: {reason}", files.certificate.display())]
    Unusable { files: TlsFiles, reason: String },
}

/// The contents of the files.
#[derive(Clone, PartialEq, Eq)]
struct Pair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl TlsFiles {
    /// When the certificate ends, if both files can be used together.
    pub fn check(&self) -> Result<Timestamp, TlsError> {
        let certified = self.parse(&self.read()?)?;
        certified.cert.first().and_then(|first| not_after(first)).ok_or_else(|| {
            let reason = "it has no date on which it ends".to_owned();
            TlsError::Unusable { files: self.clone(), reason }
        })
    }

    fn read(&self) -> Result<Pair, TlsError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| TlsError::Unreadable {
                path: path.to_owned(),
                reason: error.to_string(),
            })
        };
        Ok(Pair { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }

    fn parse(&self, pair: &Pair) -> Result<CertifiedKey, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pair.certificate).collect();
        let chain = chain.unwrap_or_default();
        if chain.is_empty() {
            return Err(TlsError::NoCertificate { path: self.certificate.clone() });
        }
        let key = PrivateKeyDer::from_pem_slice(&pair.key)
            .map_err(|_| TlsError::NoKey { path: self.key.clone() })?;
        CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => TlsError::Mismatch { files: self.clone() },
            other => TlsError::Unusable { files: self.clone(), reason: other.to_string() },
        })
    }
}

/// The TLS of a listener.
pub struct Tls {
    files: TlsFiles,
    acceptor: TlsAcceptor,
    current: Arc<Current>,
    /// What `current` was made of.
    first: Pair,
}

impl Tls {
    /// Reads both files; [`Tls::renew`] reads them again.
    pub fn open(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        let first = files.read()?;
        let current = Arc::new(Current(RwLock::new(Arc::new(files.parse(&first)?))));
        let unusable = |error: rustls::Error| TlsError::Unusable {
            files: files.clone(),
            reason: error.to_string(),
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(Self { acceptor: TlsAcceptor::from(Arc::new(config)), current, first, files }))
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Uses new contents of the files, for new connections. Whoever writes two
    /// files does it one after the other, so contents count once they were the
    /// same twice. A pair that cannot be used changes nothing and is logged once.
    pub async fn renew(self: Arc<Self>) {
        let mut seen = Ok(self.first.clone());
        let mut judged = seen.clone();
        loop {
            tokio::time::sleep(POLL).await;
            let files = self.files.clone();
            let read = tokio::task::spawn_blocking(move || files.read()).await;
            let Ok(read) = read else { continue };
            let stable = read == seen;
            seen = read;
            if !stable || seen == judged {
                continue;
            }
            judged = seen.clone();
            match judged.as_ref().map_err(TlsError::clone).and_then(|pair| self.files.parse(pair)) {
                Ok(certified) => {
                    self.current.replace(certified);
                    tracing::info!("a new TLS certificate is used from now on");
                }
                Err(error) => {
                    tracing::warn!(%error, "the new TLS certificate is not used, the one before still is");
                }
            }
        }
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

/// The certificate in use.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl Current {
    fn replace(&self, certified: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certified);
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[cfg(test)]
mod tests;
