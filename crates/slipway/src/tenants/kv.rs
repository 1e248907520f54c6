//! Reads the text that a reference of a tenant profile names, also from a KV-v2 engine. The text
//! and the token enter this process when they are needed, and no log, no error and no row has
//! them.
//!
//! Whatever goes wrong is transient: a secret that cannot be read is no reason to remove a
//! tenant.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::HeaderValue;
use reqwest::{Certificate, Response, Url, redirect};
use serde_json::Value;
use slipway_tenants::StepError;
use slipway_tenants::targets::{KvReference, LocalResolver, Reference, Resolve, Secret};

const DEADLINE: Duration = Duration::from_secs(10);
/// Of an answer, and of the files of token and certificates.
const LONGEST: usize = 1_024 * 1_024;

#[derive(Debug, Clone, Copy)]
pub(super) struct Resolver;

#[async_trait]
impl Resolve for Resolver {
    async fn resolve(&self, reference: &Reference) -> Result<Secret, StepError> {
        match reference {
            Reference::Kv(kv) => read(kv).await.map_err(|problem| {
                let KvReference { address, mount, path, .. } = kv;
                StepError::transient(format!("{mount}/{path} at {address}: {problem}"))
            }),
            local => LocalResolver.resolve(local).await,
        }
    }
}

async fn read(kv: &KvReference) -> Result<Secret, String> {
    let token = file(&kv.token_file).await?;
    let mut token = HeaderValue::from_bytes(token.trim_ascii())
        .map_err(|_| format!("the token in {} is no header", kv.token_file.display()))?;
    token.set_sensitive(true);
    let mut url = Url::parse(&kv.address).map_err(|error| error.to_string())?;
    let path = ["v1", &kv.mount, "data", &kv.path].into_iter().flat_map(|part| part.split('/'));
    url.path_segments_mut().map_err(|()| "the address is no URL")?.pop_if_empty().extend(path);
    let mut request = client(kv).await?.get(url).header("X-Vault-Token", token);
    if let Some(namespace) = &kv.namespace {
        request = request.header("X-Vault-Namespace", namespace);
    }
    let answer = request.send().await.map_err(|error| with_causes(&error.without_url()))?;
    let status = answer.status().as_u16();
    match status {
        200 => {}
        403 => return Err("refused (403): check the token and its policy".to_owned()),
        404 => return Err("there is no such secret (404), or it was deleted".to_owned()),
        _ => return Err(format!("the answer is {status}")),
    }
    let answer: Value = serde_json::from_slice(&bounded(answer).await?)
        .map_err(|_| "the answer is no JSON".to_owned())?;
    let text = answer["data"]["data"][&kv.key].as_str().map(str::trim);
    match text.filter(|text| !text.is_empty()) {
        Some(text) => Ok(Secret::new(text)),
        None => Err(format!("the secret has no text `{}`", kv.key)),
    }
}

async fn client(kv: &KvReference) -> Result<reqwest::Client, String> {
    // An error means that a provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .timeout(DEADLINE)
        // The token is for this server alone.
        .redirect(redirect::Policy::none())
        .no_proxy();
    let builder = match &kv.ca_file {
        _ if kv.address.starts_with("http:") => builder.tls_certs_only([]),
        Some(path) => {
            let read = Certificate::from_pem_bundle(&file(path).await?);
            let shown = path.display();
            builder.tls_certs_only(read.map_err(|_| format!("{shown} has no certificate in PEM"))?)
        }
        None => builder,
    };
    builder.build().map_err(|error| with_causes(&error))
}

async fn file(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let size = tokio::fs::metadata(path).await.map_err(failed)?.len();
    if size > LONGEST as u64 {
        return Err(format!("{} is too long", path.display()));
    }
    tokio::fs::read(path).await.map_err(failed)
}

async fn bounded(mut answer: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(|error| with_causes(&error))? {
        body.extend_from_slice(&part);
        if body.len() > LONGEST {
            return Err("the answer is too long".to_owned());
        }
    }
    Ok(body)
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const DSN: &str = "postgres://provisioner:hunter2@db/tenants";

    /// Answers one request, and returns its head.
    async fn serve(listener: TcpListener, answer: String) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        String::from_utf8(head).unwrap().to_lowercase()
    }

    async fn asked(status: &str, body: &str) -> (Result<Secret, StepError>, String) {
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, "s.hunter3\n").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let reference = Reference::Kv(KvReference {
            address: format!("http://{}", listener.local_addr().unwrap()),
            mount: "kv/teams".to_owned(),
            path: "shop/tenants".to_owned(),
            key: "dsn".to_owned(),
            token_file,
            namespace: Some("eu".to_owned()),
            ca_file: None,
        });
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nlocation: /x\r\n\r\n{body}");
        tokio::join!(Resolver.resolve(&reference), serve(listener, answer))
    }

    #[tokio::test]
    async fn a_text_is_read_from_a_kv_engine() {
        let body = serde_json::json!({ "data": { "data": { "dsn": DSN }, "metadata": {} } });
        let (read, head) = asked("200 OK", &body.to_string()).await;
        let read = read.unwrap();
        assert_eq!(read.expose(), DSN);
        assert!(!format!("{read:?}").contains("hunter2"));
        assert!(head.starts_with("get /v1/kv/teams/data/shop/tenants http/1.1"), "{head}");
        assert!(head.contains("x-vault-token: s.hunter3"), "{head}");
        assert!(head.contains("x-vault-namespace: eu"), "{head}");
    }

    #[tokio::test]
    async fn what_cannot_be_read_removes_no_tenant_and_shows_no_secret() {
        let without = format!(r#"{{"data": {{"data": {{"other": "{DSN}"}}}}}}"#);
        let long = "x".repeat(LONGEST + 1);
        for (status, body, said) in [
            ("403 Forbidden", "{}", "policy"),
            ("404 Not Found", "{}", "no such secret"),
            ("307 Temporary Redirect", "", "307"),
            ("503 Unavailable", DSN, "503"),
            ("200 OK", DSN, "no JSON"),
            ("200 OK", &without, "no text `dsn`"),
            ("200 OK", &long, "too long"),
        ] {
            let (read, _) = asked(status, body).await;
            let error = read.unwrap_err();
            assert!(error.is_transient() && error.message.contains(said), "{status}: {error:?}");
            assert!(!error.message.contains("hunter"), "{error:?}");
        }
    }
}
