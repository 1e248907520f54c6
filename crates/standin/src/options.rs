//! The options of the stand-in, for all composites at once.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

/// What it says at its start and in its help.
pub const NOTICE: &str = "This is a stand-in for tests. It plays Crossplane, a provider and \
                          External Secrets on a Kubernetes API; it is not Crossplane.";

/// How it behaves.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Install the kinds that Crossplane, its providers and External Secrets bring
    #[arg(long)]
    pub install: bool,

    /// With --install: a provider whose ProviderConfig is installed, in the group
    /// `NAME.crossplane.io`
    #[arg(long = "provider", value_name = "NAME")]
    pub providers: Vec<String>,

    /// How long a composite takes to become Ready
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = parse_duration)]
    pub ready_after: Duration,

    /// How long the composed resource takes to go
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = parse_duration)]
    pub deletion_delay: Duration,

    /// Only conditions: no finalizer and no composed resource, so that a composite
    /// costs one request
    #[arg(long)]
    pub bare: bool,

    /// How many of a hundred composites fail for good, chosen by a hash of the name
    #[arg(long, value_name = "PERCENT", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=100))]
    pub fail_percent: u8,

    /// What boots when a composite is Ready
    #[arg(long, value_enum, default_value = "none")]
    pub agent: AgentMode,

    /// With --agent process: called as `PATH agent node --dir DIR`; this program
    /// itself unless said
    #[arg(long, value_name = "PATH")]
    pub agent_program: Option<PathBuf>,

    /// With --agent process: where the directories of the nodes are. Agents end
    /// when theirs goes. A temporary folder unless said
    #[arg(long, value_name = "DIR")]
    pub agent_folder: Option<PathBuf>,

    /// The control plane, for nodes to which nobody says where it is (providerSecret)
    #[arg(long, value_name = "URL")]
    pub api_url: Option<String>,

    /// How often nodes send a heartbeat, whatever the injected configuration says
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub heartbeat: Option<Duration>,

    /// Append a JSON line for everything that an agent did
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
}

/// What boots when a composite is Ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AgentMode {
    /// Nothing: nobody registers
    #[default]
    None,
    /// A task that speaks the node protocol: thousands of them are cheap
    InProcess,
    /// The real agent, a process for each node
    Process,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            install: false,
            providers: Vec::new(),
            ready_after: Duration::ZERO,
            deletion_delay: Duration::ZERO,
            bare: false,
            fail_percent: 0,
            agent: AgentMode::None,
            agent_program: None,
            agent_folder: None,
            api_url: None,
            heartbeat: None,
            journal: None,
        }
    }
}

/// `250ms`, `3s`, `2m`; a bare number means milliseconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 =
        number.parse().map_err(|_| format!("{text:?} is not a time such as 250ms, 3s or 2m"))?;
    match unit {
        "" | "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        _ => Err(format!("{unit:?} in {text:?} is none of ms, s and m")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::parse_duration;

    #[test]
    fn times_are_understood_and_nonsense_is_named() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("7"), Ok(Duration::from_millis(7)));
        assert_eq!(parse_duration("3s"), Ok(Duration::from_secs(3)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "soon", "3h", "-1s", "1.5s"] {
            assert!(parse_duration(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
