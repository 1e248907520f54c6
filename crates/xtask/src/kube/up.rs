//! `cargo xtask kube up`: the environment of the tests, for people to try
//! things on. It lives until Ctrl-C and leaves nothing.

use anyhow::Context as _;
use slipway_testkit::kube::{ADMIN, KubeEnvironment};

use super::provide::provide;
use crate::command_line::Verdict;
use crate::debian::{self, Provision};

/// What `cargo xtask kube --help` prints.
pub const USAGE: &str = "\
A real Kubernetes API (etcd, kube-apiserver, kube-controller-manager) on the
loopback address, without any node, until Ctrl-C.

  cargo xtask kube up            prints the path of a kubeconfig of its administrator
";

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {}

impl Options {
    /// Understands the words after `kube`.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        match words {
            [up] if up == "up" => Ok(Self {}),
            _ => Err(format!("`kube {}` is not understood", words.join(" "))),
        }
    }
}

/// Runs it.
pub fn up(_options: Options) -> anyhow::Result<Verdict> {
    if let Provision::Missing(request) = debian::provide(&debian::KUBERNETES)? {
        eprint!("{request}");
        return Ok(Verdict::NotCarriedOut);
    }
    provide()?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start a runtime")?;
    runtime.block_on(async {
        let options = slipway_testkit::kube::Options {
            controller_manager: true,
            ..slipway_testkit::kube::Options::default()
        };
        let kubernetes = KubeEnvironment::start(options).await?.context("no Kubernetes here")?;
        let kubeconfig = kubernetes.kubeconfig_file(ADMIN)?;
        println!("\nthe API server of the tests is ready at {}", kubernetes.url());
        println!("  export KUBECONFIG={}", kubeconfig.display());
        println!("it ends with Ctrl-C, and everything in it");
        tokio::signal::ctrl_c().await.context("cannot wait for Ctrl-C")?;
        println!("\nended");
        Ok(Verdict::Fine)
    })
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        let parse = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse(&words)
        };
        assert_eq!(parse("up"), Ok(Options {}));
        for wrong in ["", "down", "up --standing"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
