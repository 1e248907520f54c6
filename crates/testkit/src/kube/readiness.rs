//! Readiness probe of a server: one request, one status code.
//!
//! It is written by hand because an HTTP client would have to be built before
//! `cargo xtask`, and this needs one line of HTTP.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A handshake may be slow on a loaded machine; the caller retries anyway.
const DEADLINE: Duration = Duration::from_secs(5);

/// Probes an API server whose certificate is from one authority.
#[derive(Clone, Debug)]
pub(super) struct Readiness {
    configuration: Arc<ClientConfig>,
    port: u16,
}

impl Readiness {
    pub(super) fn new(authority: &CertificateDer<'static>, port: u16) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone()).context("the authority just made is not one")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let configuration = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("no version of TLS to speak")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { configuration: Arc::new(configuration), port })
    }

    /// The status code of the API server for `path`.
    pub(super) fn ask(&self, path: &str, token: &str) -> io::Result<u16> {
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let connection = ClientConnection::new(Arc::clone(&self.configuration), name)
            .map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, connect(self.port)?);
        request(&mut stream, path, &format!("Authorization: Bearer {token}\r\n"))
    }
}

/// The status code of etcd for `path`, without TLS.
pub(super) fn ask_plainly(port: u16, path: &str) -> io::Result<u16> {
    request(&mut connect(port)?, path, "")
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, DEADLINE)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    Ok(stream)
}

fn request(stream: &mut (impl Read + Write), path: &str, headers: &str) -> io::Result<u16> {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Connection: close\r\n\r\n")?;
    stream.flush()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    line.split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| io::Error::other(format!("answered {line:?}")))
}
