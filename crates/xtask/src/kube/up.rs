//! `cargo xtask kube up`: the environment of the tests, for people to try
//! things on. It runs until Ctrl-C and leaves nothing behind.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use slipway_testkit::kube::{self, ADMIN, KubeEnvironment, OTHER_ADMIN};
use slipway_testkit::process;

use super::provide::provide;
use crate::cargo::Cargo;
use crate::command_line::Verdict;
use crate::debian::{self, Provision};

/// What `cargo xtask kube --help` prints.
pub const USAGE: &str = "\
A real Kubernetes API (etcd, kube-apiserver, kube-controller-manager) on the
loopback address, without any node, until Ctrl-C.

  cargo xtask kube up            prints the path of a kubeconfig of its administrator
  cargo xtask kube up --standin [FLAG...]
                                 with the stand-in for Crossplane, a provider and
                                 External Secrets; FLAGs go to the stand-in, whose
                                 own --help has them
";

/// The parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The flags of a stand-in, if one has to run.
    standin: Option<Vec<String>>,
}

impl Options {
    /// Parses the words after `kube`.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        match words {
            [up] if up == "up" => Ok(Self::default()),
            [up, standin, flags @ ..] if up == "up" && standin == "--standin" => {
                Ok(Self { standin: Some(flags.to_vec()) })
            }
            _ => Err(format!("`kube {}` is not understood", words.join(" "))),
        }
    }
}

/// Runs it in the workspace at `root`.
pub fn up(root: &Path, options: &Options) -> anyhow::Result<Verdict> {
    if let Provision::Missing(request) = debian::provide(&debian::KUBERNETES)? {
        eprint!("{request}");
        return Ok(Verdict::NotCarriedOut);
    }
    provide()?;
    let standin = match &options.standin {
        Some(flags) => Some((build_standin(root)?, flags)),
        None => None,
    };
    let runtime = tokio::runtime::Runtime::new().context("cannot start a runtime")?;
    runtime.block_on(async {
        let options = kube::Options { controller_manager: true, ..kube::Options::default() };
        let kubernetes = KubeEnvironment::start(options).await?.context("no Kubernetes here")?;
        let kubeconfig = kubernetes.kubeconfig_file(ADMIN)?;
        println!("\nthe API server of the tests is ready at {}", kubernetes.url());
        println!("  export KUBECONFIG={}", kubeconfig.display());
        if let Some((program, flags)) = standin {
            start_standin(&kubernetes, &program, flags).await?;
        }
        println!("it ends with Ctrl-C, and everything in it");
        tokio::signal::ctrl_c().await.context("cannot wait for Ctrl-C")?;
        println!("\nended");
        Ok(Verdict::Fine)
    })
}

fn build_standin(root: &Path) -> anyhow::Result<PathBuf> {
    let cargo = Cargo::new(root);
    cargo.run(&["build", "--package", "slipway-standin"])?;
    Ok(cargo.built("debug", "crossplane-standin"))
}

async fn start_standin(
    kubernetes: &KubeEnvironment,
    program: &Path,
    flags: &[String],
) -> anyhow::Result<()> {
    let (kubeconfig, folder) = (kubernetes.kubeconfig_file(OTHER_ADMIN)?, kubernetes.folder());
    let mut arguments = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--install".to_owned(),
        // Agents started there end when the folder is removed.
        format!("--agent-folder={}", folder.join("agents").display()),
    ];
    arguments.extend_from_slice(flags);
    let pid = kubernetes.run_beside("standin", program, &arguments).await?;
    // An unknown flag ends it at once; a known one does not.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(2);
    while tokio::time::Instant::now() < deadline {
        if !process::is_alive(pid) {
            bail!("the stand-in ended:\n{}", kubernetes.end_of_log("standin"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("a stand-in plays Crossplane; its log is {}", folder.join("standin.log").display());
    Ok(())
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
        assert_eq!(parse("up"), Ok(Options { standin: None }));
        let standin = parse("up --standin --ready-after 2s").unwrap().standin.unwrap();
        assert_eq!(standin, ["--ready-after", "2s"]);
        for wrong in ["", "down", "up --standing"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
