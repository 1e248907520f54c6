//! Parses the command line, runs the chore and returns its exit code.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;

use crate::{bench, deploy, fuzz, generate, kube, soak, test, tidy};

const USAGE: &str = "\
The chores of a contributor.

  cargo xtask test [FILTER...]   everything that has to be green: format, lints,
                                 tidy, build, tests. What stands after `test` goes
                                 to the test binaries: names, or their options
  cargo xtask test kube [FILTER...]
                                 only the tests on a real Kubernetes API: all test
                                 binaries named `kube`
  cargo xtask kube up            a real Kubernetes API to try things on, until Ctrl-C;
                                 `kube --help` has the options
  cargo xtask tidy               only the rules of the tree
  cargo xtask generate           writes what is generated: docs/cli.md, docs/openapi.json, the schema of metadata.json
                                 from the code, deploy/manifests and deploy/rbac from
                                 the chart
  cargo xtask chart              only what is generated from the chart, and its checks
  cargo xtask fuzz [EXAMPLES [SEED]]
                                 lets schemathesis ask the API everything, 30 examples
                                 an operation unless said; it comes from PyPI
  cargo xtask soak [OPTION...]   real control planes under a random schedule of
                                 requests and faults; `soak --help` has the options
  cargo xtask soak tenants [SECONDS [SEED]]
                                 kills and pauses workers on tenant jobs, 600 s unless
                                 said, on both databases
  cargo xtask bench apply|broker|crossplane|deletion|enrol|fleet|freeze|lists|tenants|topology [--quick]
                                 the figures of documents from files, of the
                                 resource loop, of composites on a real API server,
                                 of deletions, of enrolments into one project, of
                                 Fleet, of resources that wait under a freeze, of lists
                                 of 100,000 resources, of tenant jobs, or of the gates
                                 and the teardown of workspaces; release build,
                                 the last line is one JSON object

Exit codes: 0 all is well, 1 something failed, 2 the call cannot be carried out
as it is (unknown command, something to install first).
";

/// Runs a command line; `arguments` are without the program's name.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let arguments: Vec<String> = arguments.collect();
    let outcome = match Request::parse(&arguments) {
        Request::Help => {
            print!("{USAGE}");
            Ok(Verdict::Fine)
        }
        Request::Test { filters } => workspace_root().and_then(|root| test::run(&root, filters)),
        Request::TestKube { filters } => {
            workspace_root().and_then(|root| test::run_kube(&root, filters))
        }
        Request::KubeHelp => {
            print!("{}", kube::USAGE);
            Ok(Verdict::Fine)
        }
        Request::Kube { words } => match kube::Options::parse(words) {
            Ok(options) => workspace_root().and_then(|root| kube::up(&root, &options)),
            Err(wrong) => {
                eprint!("{wrong}\n\n{}", kube::USAGE);
                Ok(Verdict::NotCarriedOut)
            }
        },
        Request::Soak { options } => workspace_root().and_then(|root| soak::run(&root, options)),
        Request::Bench { arguments } => {
            workspace_root().and_then(|root| bench::run(&root, arguments))
        }
        Request::Fuzz { examples, seed } => {
            workspace_root().and_then(|root| fuzz::run(&root, examples, seed))
        }
        Request::Chart => workspace_root().and_then(|root| deploy::run(&root)),
        Request::Generate => workspace_root().and_then(|root| generate::run(&root)),
        Request::Tidy => workspace_root().and_then(|root| tidy::run(&root)),
        Request::Unknown(command) => {
            eprint!("there is no command `{command}`\n\n{USAGE}");
            Ok(Verdict::NotCarriedOut)
        }
    };
    match outcome {
        Ok(verdict) => verdict.into(),
        Err(error) => {
            eprintln!("{error:#}");
            Verdict::Failed.into()
        }
    }
}

/// How a chore ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is in order.
    Fine,
    /// Something is wrong and was reported.
    Failed,
    /// It could not start; the remedy was printed.
    NotCarriedOut,
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Fine => Self::SUCCESS,
            Verdict::Failed => Self::from(1),
            Verdict::NotCarriedOut => Self::from(2),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Request<'a> {
    Help,
    Test { filters: &'a [String] },
    TestKube { filters: &'a [String] },
    Kube { words: &'a [String] },
    KubeHelp,
    Soak { options: &'a [String] },
    Bench { arguments: &'a [String] },
    Fuzz { examples: u32, seed: u64 },
    Chart,
    Generate,
    Tidy,
    Unknown(String),
}

impl<'a> Request<'a> {
    fn parse(arguments: &'a [String]) -> Self {
        let Some((command, rest)) = arguments.split_first() else {
            return Self::Unknown(String::new());
        };
        match (command.as_str(), rest) {
            ("help" | "-h" | "--help", []) => Self::Help,
            ("test" | "tidy", [only]) if matches!(only.as_str(), "-h" | "--help") => Self::Help,
            ("soak", options) => Self::Soak { options },
            ("bench", arguments @ [bench, quick @ ..])
                if matches!(
                    bench.as_str(),
                    "apply"
                        | "broker"
                        | "crossplane"
                        | "deletion"
                        | "enrol"
                        | "fleet"
                        | "freeze"
                        | "lists"
                        | "tenants"
                        | "topology"
                ) && matches!(quick, [] | [_])
                    && quick.iter().all(|word| word == "--quick") =>
            {
                Self::Bench { arguments }
            }
            ("test", [kind, filters @ ..]) if kind == "kube" => Self::TestKube { filters },
            ("test", filters) => Self::Test { filters },
            ("kube", [only]) if matches!(only.as_str(), "-h" | "--help") => Self::KubeHelp,
            ("kube", words) => Self::Kube { words },
            ("fuzz", words @ ([] | [_] | [_, _])) => match numbers(words) {
                Some((examples, seed)) => Self::Fuzz { examples, seed },
                None => Self::Unknown(arguments.join(" ")),
            },
            ("chart", []) => Self::Chart,
            ("generate", []) => Self::Generate,
            ("tidy", []) => Self::Tidy,
            _ => Self::Unknown(arguments.join(" ")),
        }
    }
}

/// The number of examples and the seed, if they are numbers.
fn numbers(words: &[String]) -> Option<(u32, u64)> {
    let examples = words.first().map_or(Ok(30), |word| word.parse());
    let seed = words.get(1).map_or(Ok(1), |word| word.parse());
    Some((examples.ok()?, seed.ok()?))
}

/// The folder of the workspace. Cargo passes the package folder to a program
/// that it runs; without cargo, the search goes from here upwards.
pub fn workspace_root() -> anyhow::Result<PathBuf> {
    let start = match env::var_os("CARGO_MANIFEST_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => env::current_dir()?,
    };
    let is_root =
        |folder: &&Path| folder.join("Cargo.lock").exists() && folder.join("crates").is_dir();
    match start.ancestors().find(is_root) {
        Some(root) => Ok(root.to_owned()),
        None => {
            bail!("{} is not inside the workspace: call this as `cargo xtask`", start.display())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Request;

    fn parse(line: &str) -> String {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        format!("{:?}", Request::parse(&arguments))
    }

    #[test]
    fn commands_are_told_apart() {
        assert_eq!(parse("test"), "Test { filters: [] }");
        assert_eq!(
            parse("test drain --nocapture"),
            r#"Test { filters: ["drain", "--nocapture"] }"#
        );
        assert_eq!(parse("test kube"), "TestKube { filters: [] }");
        assert_eq!(parse("test kube apply"), r#"TestKube { filters: ["apply"] }"#);
        assert_eq!(parse("kube up"), r#"Kube { words: ["up"] }"#);
        assert_eq!(parse("kube --help"), "KubeHelp");
        assert_eq!(parse("tidy"), "Tidy");
        assert_eq!(parse("generate"), "Generate");
        assert_eq!(parse("chart"), "Chart");
        assert_eq!(parse("fuzz"), "Fuzz { examples: 30, seed: 1 }");
        assert_eq!(parse("fuzz 5 7"), "Fuzz { examples: 5, seed: 7 }");
        assert_eq!(parse("fuzz much"), r#"Unknown("fuzz much")"#);
        assert_eq!(parse("soak --seed 7"), r#"Soak { options: ["--seed", "7"] }"#);
        assert_eq!(parse("soak --help"), r#"Soak { options: ["--help"] }"#);
        assert_eq!(parse("bench broker"), r#"Bench { arguments: ["broker"] }"#);
        assert_eq!(parse("bench fleet"), r#"Bench { arguments: ["fleet"] }"#);
        assert_eq!(parse("bench crossplane"), r#"Bench { arguments: ["crossplane"] }"#);
        assert_eq!(parse("bench broker --quick"), r#"Bench { arguments: ["broker", "--quick"] }"#);
        assert_eq!(parse("bench tenants"), r#"Bench { arguments: ["tenants"] }"#);
        assert_eq!(parse("bench topology"), r#"Bench { arguments: ["topology"] }"#);
        assert_eq!(parse("--help"), "Help");
        assert_eq!(parse("test --help"), "Help");
        assert_eq!(parse("test help"), r#"Test { filters: ["help"] }"#);
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        assert_eq!(parse(""), r#"Unknown("")"#);
        assert_eq!(parse("tset"), r#"Unknown("tset")"#);
        assert_eq!(parse("bench brokre"), r#"Unknown("bench brokre")"#);
        assert_eq!(parse("bench broker --quikc"), r#"Unknown("bench broker --quikc")"#);
        assert_eq!(parse("tidy everything"), r#"Unknown("tidy everything")"#);
    }
}
