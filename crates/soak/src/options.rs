//! The options of a soak.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const USAGE: &str = "\
cargo xtask soak [OPTION...]

  --minutes N | --seconds N       how long the schedule is            [1 minute]
  --seed S                        the schedule is drawn from this     [1]
  --scenario mixed|replicas|cluster
                                  everything at random; or many resources while
                                  control planes are killed and paused; or a
                                  real Kubernetes API behind a proxy that
                                  delays, drops and duplicates requests [mixed]
  --database sqlite|postgres      [sqlite; postgres with two replicas]
  --replicas 1|2                  control planes that share the work  [1; 2 for replicas]
  --resources M                   handles that are used               [16; 200 for replicas,
                                  12 for cluster]
  --debug                         soak the debug build                [release]
  --binary FILE                   soak this program, do not build it
  --standin FILE                  for cluster: this crossplane-standin, do not
                                  build it
  --keep                          leave the folder with logs and nodes behind
  --print                         only print the schedule

The last line is one JSON object. Exit code 1 if anything was violated.
";

/// Which operations are drawn at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    /// Declarations, deletions and every fault.
    Mixed,
    /// Declares all resources at once; only control planes get faults.
    Replicas,
    /// The engine crossplane on a real Kubernetes API, behind a proxy with faults.
    Cluster,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mixed => "mixed",
            Self::Replicas => "replicas",
            Self::Cluster => "cluster",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Database {
    Sqlite,
    Postgres,
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) scenario: Scenario,
    pub(super) seed: u64,
    pub(super) seconds: u64,
    pub(super) database: Database,
    pub(super) replicas: usize,
    pub(super) resources: usize,
    pub(super) debug: bool,
    pub(super) binary: Option<PathBuf>,
    pub(super) standin: Option<PathBuf>,
    pub(super) keep: bool,
    pub(super) print: bool,
}

impl Options {
    /// Another replica takes over a claim after this long without renewal. It
    /// is the shortest lease that the product accepts, so that pauses beyond it
    /// stay short.
    pub(super) const LEASE: Duration = Duration::from_secs(3);

    /// Reads a command line; the error says what is wrong with it.
    pub(super) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut parsed = Parsed::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value =
                || rest.next().cloned().ok_or_else(|| format!("`{argument}` needs a value"));
            match argument.as_str() {
                "--minutes" => {
                    parsed.seconds = Some(number(argument, &value()?)?.saturating_mul(60));
                }
                "--seconds" => parsed.seconds = Some(number(argument, &value()?)?),
                "--seed" => parsed.seed = Some(number(argument, &value()?)?),
                "--replicas" => parsed.replicas = Some(number(argument, &value()?)?),
                "--resources" => parsed.resources = Some(number(argument, &value()?)?),
                "--scenario" => {
                    parsed.scenario = Some(match value()?.as_str() {
                        "mixed" => Scenario::Mixed,
                        "replicas" => Scenario::Replicas,
                        "cluster" => Scenario::Cluster,
                        other => return Err(format!("there is no scenario `{other}`")),
                    });
                }
                "--database" => {
                    parsed.database = Some(match value()?.as_str() {
                        "sqlite" => Database::Sqlite,
                        "postgres" => Database::Postgres,
                        other => return Err(format!("there is no database `{other}`")),
                    });
                }
                "--binary" => parsed.binary = Some(PathBuf::from(value()?)),
                "--standin" => parsed.standin = Some(PathBuf::from(value()?)),
                "--debug" => parsed.debug = true,
                "--keep" => parsed.keep = true,
                "--print" => parsed.print = true,
                other => return Err(format!("there is no option `{other}`")),
            }
        }
        parsed.complete()
    }
}

#[derive(Default)]
struct Parsed {
    scenario: Option<Scenario>,
    seed: Option<u64>,
    seconds: Option<u64>,
    database: Option<Database>,
    replicas: Option<u64>,
    resources: Option<u64>,
    debug: bool,
    binary: Option<PathBuf>,
    standin: Option<PathBuf>,
    keep: bool,
    print: bool,
}

impl Parsed {
    fn complete(self) -> Result<Options, String> {
        let scenario = self.scenario.unwrap_or(Scenario::Mixed);
        let (many, two) = match scenario {
            Scenario::Mixed => (16, 1),
            Scenario::Replicas => (200, 2),
            Scenario::Cluster => (12, 1),
        };
        let replicas = match self.replicas.unwrap_or(two) {
            1 => 1,
            2 => 2,
            _ => return Err("`--replicas` is 1 or 2".to_owned()),
        };
        let usual = if replicas == 2 { Database::Postgres } else { Database::Sqlite };
        let database = self.database.unwrap_or(usual);
        if replicas == 2 && database == Database::Sqlite {
            return Err("two replicas share a database, and SQLite is one process's".to_owned());
        }
        let resources = match usize::try_from(self.resources.unwrap_or(many)) {
            Ok(count @ 1..=1_000) => count,
            _ => return Err("`--resources` is from 1 to 1000".to_owned()),
        };
        let seconds = self.seconds.unwrap_or(60);
        if seconds == 0 {
            return Err("a soak takes at least a second".to_owned());
        }
        Ok(Options {
            scenario,
            seed: self.seed.unwrap_or(1),
            seconds,
            database,
            replicas,
            resources,
            debug: self.debug,
            binary: self.binary,
            standin: self.standin,
            keep: self.keep,
            print: self.print,
        })
    }
}

fn number(option: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{option}` needs a number, and `{text}` is none"))
}

#[cfg(test)]
mod tests {
    use super::{Database, Options, Scenario};

    fn parse(line: &str) -> Result<Options, String> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn what_is_not_said_fits_the_rest() {
        let plain = parse("--minutes 10 --seed 7").unwrap();
        assert_eq!((plain.seconds, plain.seed, plain.replicas), (600, 7, 1));
        assert_eq!((plain.scenario, plain.database), (Scenario::Mixed, Database::Sqlite));
        let replicas = parse("--scenario replicas").unwrap();
        assert_eq!((replicas.replicas, replicas.resources), (2, 200));
        assert_eq!(replicas.database, Database::Postgres);
        let cluster = parse("--scenario cluster").unwrap();
        assert_eq!((cluster.replicas, cluster.resources), (1, 12));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (line, named) in [
            ("--replicas 3", "--replicas"),
            ("--replicas 2 --database sqlite", "SQLite"),
            ("--minutes soon", "soon"),
            ("--seed", "--seed"),
            ("--scenario calm", "calm"),
            ("--resources 0", "--resources"),
            ("--seconds 0", "a second"),
            ("--faster", "--faster"),
        ] {
            let refused = parse(line).unwrap_err();
            assert!(refused.contains(named), "{line}: {refused}");
        }
    }
}
