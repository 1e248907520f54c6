//! The servers of an environment, and the command line of each.

use std::fmt::Write as _;
use std::path::Path;

use super::binaries::Binaries;

/// A server that a test can stop and restart by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Etcd,
    ApiServer,
    ControllerManager,
}

impl Part {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
        }
    }
}

/// Ports of 127.0.0.1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) etcd: u16,
    pub(super) etcd_peer: u16,
    pub(super) api_server: u16,
}

/// Names of the files in the folder, besides the data.
pub(super) mod file {
    pub(crate) const AUTHORITY: &str = "authority.pem";
    pub(crate) const SERVER: &str = "server.pem";
    pub(crate) const SERVER_KEY: &str = "server-key.pem";
    pub(crate) const SERVICE_ACCOUNT_KEY: &str = "service-account-key.pem";
    pub(crate) const SERVICE_ACCOUNT_PUBLIC_KEY: &str = "service-account-public-key.pem";
    pub(crate) const TOKENS: &str = "tokens.csv";
    pub(crate) const AUDIT_POLICY: &str = "audit-policy.yaml";
    pub(crate) const AUDIT_LOG: &str = "audit.log";
    pub(crate) const CONTROLLER_KUBECONFIG: &str = "kubeconfig-controller-manager.yaml";
}

/// Two records per request and three per watch.
pub(super) const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
";

/// The controllers that tests rely on: removal of namespaces and of owned
/// objects, service accounts and their tokens, and the two without which a
/// `ResourceQuota` refuses everything and an aggregated role stays empty.
const CONTROLLERS: &str = "namespace,garbagecollector,serviceaccount,serviceaccount-token,\
                           resourcequota,clusterrole-aggregation";

pub(super) fn etcd(binaries: &Binaries, folder: &Path, ports: Ports) -> String {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    script(
        &binaries.etcd,
        &[
            format!("--data-dir={}", folder.join("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--log-level=warn".to_owned(),
        ],
    )
}

pub(super) fn api_server(
    binaries: &Binaries,
    folder: &Path,
    ports: Ports,
    more: &[String],
) -> String {
    let in_folder = |name: &str| folder.join(name).display().to_string();
    let issuer = format!("https://127.0.0.1:{}", ports.api_server);
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.api_server),
        format!("--tls-cert-file={}", in_folder(file::SERVER)),
        format!("--tls-private-key-file={}", in_folder(file::SERVER_KEY)),
        format!("--client-ca-file={}", in_folder(file::AUTHORITY)),
        format!("--cert-dir={}", folder.display()),
        format!("--token-auth-file={}", in_folder(file::TOKENS)),
        "--authorization-mode=RBAC".to_owned(),
        format!("--audit-policy-file={}", in_folder(file::AUDIT_POLICY)),
        format!("--audit-log-path={}", in_folder(file::AUDIT_LOG)),
        // Megabytes. A log rotation in the middle of a test would lose records
        // that the test reads.
        "--audit-log-maxsize=100000".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        format!("--service-account-issuer={issuer}"),
        format!("--service-account-key-file={}", in_folder(file::SERVICE_ACCOUNT_PUBLIC_KEY)),
        format!("--service-account-signing-key-file={}", in_folder(file::SERVICE_ACCOUNT_KEY)),
        format!("--api-audiences={issuer}"),
        // This plugin refuses pods until a controller has made the accounts. No
        // pod runs here.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
    ];
    arguments.extend_from_slice(more);
    script(&binaries.api_server, &arguments)
}

pub(super) fn controller_manager(binaries: &Binaries, folder: &Path) -> String {
    let in_folder = |name: &str| folder.join(name).display().to_string();
    script(
        &binaries.controller_manager,
        &[
            format!("--kubeconfig={}", in_folder(file::CONTROLLER_KUBECONFIG)),
            format!("--controllers={CONTROLLERS}"),
            format!("--service-account-private-key-file={}", in_folder(file::SERVICE_ACCOUNT_KEY)),
            format!("--root-ca-file={}", in_folder(file::AUTHORITY)),
            format!("--cert-dir={}", folder.display()),
            "--leader-elect=false".to_owned(),
            // No test uses its port.
            "--port=0".to_owned(),
            "--secure-port=0".to_owned(),
            // The defaults (20 and 30) let a thousand deletions queue up.
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
        ],
    )
}

/// A shell script that execs the program, so that both have the same process id.
pub(super) fn script(program: &Path, arguments: &[String]) -> String {
    let mut text = format!("exec {}", quoted(&program.display().to_string()));
    for argument in arguments {
        let _infallible = write!(text, " {}", quoted(argument));
    }
    text.push('\n');
    text
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::script;

    #[test]
    fn an_argument_reaches_the_program_as_it_is() {
        let strange = ["a b", "it's", "$HOME `x` \"y\"", ""].map(str::to_owned);
        let mut arguments = vec!["[%s]".to_owned()];
        arguments.extend(strange);
        let text = script(Path::new("printf"), &arguments);
        let said = Command::new("sh").arg("-c").arg(text).output().unwrap().stdout;
        assert_eq!(String::from_utf8(said).unwrap(), "[a b][it's][$HOME `x` \"y\"][]");
    }
}
