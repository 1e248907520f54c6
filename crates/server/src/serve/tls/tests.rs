//! A listener with TLS, by a client that trusts one authority.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::routing::get;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::*;
use crate::serve::{Listening, serve};

/// An authority, and the files of a certificate that it issued.
struct World {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
    connector: TlsConnector,
}

impl World {
    fn new() -> Self {
        let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = authority.self_signed(&key).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        // A resumed session would show the certificate of the first one.
        client.resumption = Resumption::disabled();
        client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let folder = tempfile::tempdir().unwrap();
        let connector = TlsConnector::from(Arc::new(client));
        let world = Self { folder, issuer: Issuer::new(authority, key), connector };
        world.write(&world.issue());
        world
    }

    /// Certificate and key, in PEM.
    fn issue(&self) -> (String, String) {
        let parameters = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn files(&self) -> TlsFiles {
        let path = |name: &str| self.folder.path().join(name);
        TlsFiles { certificate: path("tls.crt"), key: path("tls.key") }
    }

    fn write(&self, (certificate, key): &(String, String)) {
        let files = self.files();
        std::fs::write(files.certificate, certificate).unwrap();
        std::fs::write(files.key, key).unwrap();
    }

    /// Serves until the sender is dropped.
    async fn serve(&self) -> (SocketAddr, Arc<Tls>, oneshot::Sender<()>) {
        let tls = Tls::open(self.files()).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = oneshot::channel::<()>();
        let router = Router::new().route("/", get(async || "here"));
        let listening = Listening { tls: Some(Arc::clone(&tls)), proxy: None };
        tokio::spawn(serve(listener, router, listening, async {
            let _ = stopping.await;
        }));
        (address, tls, stop)
    }

    /// The certificate that the server shows, after one request.
    async fn shown(&self, address: SocketAddr) -> Vec<u8> {
        let socket = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = self.connector.connect(name, socket).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it ends with a close_notify");
        assert!(answer.ends_with("here"), "{answer}");
        let (_, session) = stream.get_ref();
        assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
        session.peer_certificates().unwrap()[0].to_vec()
    }
}

fn der(pem: &str) -> Vec<u8> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec()
}

/// The clock advances by itself whenever all wait for it.
#[tokio::test(start_paused = true)]
async fn a_new_certificate_is_used_without_a_restart_and_a_bad_one_is_not() {
    let world = World::new();
    let (address, tls, _stop) = world.serve().await;
    tokio::spawn(tls.renew());
    world.shown(address).await;

    let renewed = world.issue();
    world.write(&renewed);
    let waits = async {
        while world.shown(address).await != der(&renewed.0) {
            tokio::time::sleep(POLL).await;
        }
    };
    timeout(POLL * 10, waits).await.expect("the new certificate is shown");

    let (other, key) = (world.issue(), world.issue().1);
    for bad in [(other.0, key), ("no certificate".to_owned(), renewed.1.clone())] {
        world.write(&bad);
        tokio::time::sleep(POLL * 4).await;
        assert_eq!(world.shown(address).await, der(&renewed.0), "the one before stays");
    }
    std::fs::remove_file(world.files().key).unwrap();
    tokio::time::sleep(POLL * 4).await;
    assert_eq!(world.shown(address).await, der(&renewed.0));

    let last = world.issue();
    world.write(&last);
    tokio::time::sleep(POLL * 4).await;
    assert_eq!(world.shown(address).await, der(&last.0), "and a good one is taken again");
}

/// Nothing, half a greeting, or plain HTTP.
#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_end_is_given_up() {
    let world = World::new();
    let (address, _, _stop) = world.serve().await;
    for half in [&b""[..], &[22, 3, 1, 2, 0, 1], b"GET / HTTP/1.1\r\n\r\n"] {
        let begun = Instant::now();
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(half).await.unwrap();
        let mut rest = Vec::new();
        let ended = timeout(Duration::from_secs(60), connection.read_to_end(&mut rest));
        // An end or a reset.
        let _ended_somehow = ended.await.expect("the connection was left open");
        assert!(begun.elapsed() <= Duration::from_secs(6), "{half:?}");
    }
    world.shown(address).await;
}

#[test]
fn what_cannot_be_used_is_named_without_its_content() {
    let world = World::new();
    let files = world.files();
    assert!(files.check().is_ok());
    let (one, two) = (world.issue(), world.issue());
    world.write(&(one.0.clone(), two.1));
    assert_eq!(files.check(), Err(TlsError::Mismatch { files: files.clone() }));
    world.write(&(one.0.clone(), "nothing".to_owned()));
    assert_eq!(files.check(), Err(TlsError::NoKey { path: files.key.clone() }));
    world.write(&(one.1.clone(), one.1.clone()));
    let refused = files.check().unwrap_err();
    assert_eq!(refused, TlsError::NoCertificate { path: files.certificate.clone() });
    assert!(!refused.to_string().contains("PRIVATE"), "{refused}");
    std::fs::remove_file(&files.key).unwrap();
    assert!(matches!(files.check(), Err(TlsError::Unreadable { path, .. }) if path == files.key));
}
