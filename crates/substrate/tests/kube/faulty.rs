//! A proxy before the API server that answers some requests itself. It terminates
//! TLS on both sides, with the server's own certificate.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::json;
use slipway_testkit::kube::{ADMIN, KubeEnvironment};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The answer to every request whose first line contains all of `holding`.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) holding: Vec<String>,
    pub(crate) answer: Vec<u8>,
    /// How many requests get this answer; then the server answers again.
    pub(crate) times: usize,
}

/// The proxy. It ends when this is dropped.
pub(crate) struct Faulty {
    pub(crate) kubeconfig: String,
    rule: Arc<Mutex<Option<Rule>>>,
    accepting: JoinHandle<()>,
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Faulty {
    pub(crate) async fn before(kubernetes: &KubeEnvironment) -> Self {
        let provider = || Arc::new(rustls::crypto::ring::default_provider());
        let file = |name: &str| kubernetes.folder().join(name);
        let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(file("server-key.pem")).unwrap();
        let server = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(kubernetes.authority().as_bytes()).unwrap())
            .unwrap();
        let client = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let target = kubernetes.url().strip_prefix("https://").unwrap().parse().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let here = format!("https://{}", listener.local_addr().unwrap());
        let rule = Arc::new(Mutex::new(None));
        let way = Way {
            acceptor: TlsAcceptor::from(Arc::new(server)),
            connector: TlsConnector::from(Arc::new(client)),
            target,
            rule: Arc::clone(&rule),
        };
        Self {
            kubeconfig: kubernetes.kubeconfig(ADMIN).replace(&kubernetes.url(), &here),
            rule,
            accepting: tokio::spawn(accept(listener, way)),
        }
    }

    pub(crate) fn rule(&self, rule: Option<Rule>) {
        *self.rule.lock().unwrap() = rule;
    }
}

/// A refusal as the API server sends it.
pub(crate) fn refusal(code: u16, reason: &str) -> Vec<u8> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("played: {reason}"), "reason": reason, "code": code,
    });
    answer(code, &status.to_string())
}

/// A watch that begins and ends with the error that its version is too old.
pub(crate) fn too_old() -> Vec<u8> {
    let event = json!({ "type": "ERROR", "object": {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version: 1 (2)", "reason": "Expired", "code": 410,
    } });
    answer(200, &format!("{event}\n"))
}

fn answer(code: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {code} Played\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[derive(Clone)]
struct Way {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    target: SocketAddr,
    rule: Arc<Mutex<Option<Rule>>>,
}

async fn accept(listener: TcpListener, way: Way) {
    while let Ok((stream, _)) = listener.accept().await {
        let way = way.clone();
        // Its client handles a connection that breaks.
        tokio::spawn(async move { way.pass(stream).await.is_ok() });
    }
}

impl Way {
    /// Passes one request; the connection ends with it, so that the rule is also
    /// checked for the next one.
    async fn pass(self, stream: TcpStream) -> std::io::Result<()> {
        let mut client = self.acceptor.accept(stream).await?;
        let mut head = Vec::new();
        let line = loop {
            if client.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
            if let Some(end) = head.windows(2).position(|two| two == b"\r\n") {
                break end;
            }
        };
        if let Some(answer) = self.answer_to(&String::from_utf8_lossy(&head[..line])) {
            client.write_all(&answer).await?;
            return client.shutdown().await;
        }
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let server = TcpStream::connect(self.target).await?;
        let mut server = self.connector.connect(name, server).await?;
        server.write_all(&head[..line]).await?;
        server.write_all(b"\r\nConnection: close").await?;
        server.write_all(&head[line..]).await?;
        copy_bidirectional(&mut client, &mut server).await.map(|_| ())
    }

    fn answer_to(&self, line: &str) -> Option<Vec<u8>> {
        let mut rule = self.rule.lock().unwrap();
        let rule = rule.as_mut().filter(|rule| rule.times > 0)?;
        if !rule.holding.iter().all(|part| line.contains(part)) {
            return None;
        }
        rule.times -= 1;
        Some(rule.answer.clone())
    }
}
