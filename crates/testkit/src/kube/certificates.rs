//! The certificate authority of an environment, the certificate of its API
//! server, and the key that signs service account tokens.

use anyhow::Context as _;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::CertificateDer;

/// Everything in PEM, as the programs read it.
#[derive(Debug)]
pub(super) struct Certificates {
    pub(super) authority: String,
    /// The authority's certificate in DER, for our own client.
    pub(super) authority_der: CertificateDer<'static>,
    pub(super) server: String,
    pub(super) server_key: String,
    pub(super) service_account_key: String,
    pub(super) service_account_public_key: String,
}

impl Certificates {
    pub(super) fn issue() -> anyhow::Result<Self> {
        Self::issue_all().context("cannot make certificates for the API server")
    }

    fn issue_all() -> Result<Self, rcgen::Error> {
        let mut authority = CertificateParams::new(Vec::<String>::new())?;
        authority.distinguished_name.push(DnType::CommonName, "slipway test authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority_key = KeyPair::generate()?;
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);

        let names = ["localhost", "kubernetes.default.svc", "127.0.0.1"].map(str::to_owned);
        let mut server = CertificateParams::new(names)?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        let server_key = KeyPair::generate()?;
        let server_certificate = server.signed_by(&server_key, &issuer)?;
        let service_account_key = KeyPair::generate()?;
        Ok(Self {
            authority: authority_certificate.pem(),
            authority_der: authority_certificate.der().clone(),
            server: server_certificate.pem(),
            server_key: server_key.serialize_pem(),
            service_account_key: service_account_key.serialize_pem(),
            service_account_public_key: service_account_key.public_key_pem(),
        })
    }
}
