//! The command line and its limits.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

const AFTER_HELP: &str = "\
Exit codes:
  0  the document was printed
  1  the file cannot be evaluated
  2  the command line is wrong, or FILE cannot be read
  3  a limit was exceeded: time, memory, depth or output
  4  a file outside of the folder was asked for
  5  the evaluator itself failed

Imports are relative and stay in the folder. The program brings along
`schemas/infrastructure/compute/scaling.ncl`. NICKEL_IMPORT_PATH is ignored.";

/// Evaluate a workspace file written in Nickel to JSON
#[derive(Debug, Parser)]
#[command(name = "slipway-nickel", version, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The file to evaluate
    pub(crate) file: PathBuf,

    /// The only folder that is read; that of FILE unless said
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,

    /// How long it may take, in ms, s or m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) timeout: Duration,

    /// How much memory the evaluator may map, in MiB or GiB
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = memory)]
    pub(crate) memory: u64,

    /// How errors are written to stderr
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ErrorFormat::Text)]
    pub(crate) errors: ErrorFormat,

    /// Set by the supervisor when it starts the evaluator.
    #[arg(long, hide = true)]
    pub(crate) evaluator: bool,
}

/// How errors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ErrorFormat {
    /// For people, with excerpts
    Text,
    /// One document, for programs
    Json,
}

/// The longest time that can be asked for. Whoever needs more has a file that loops.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// The evaluator maps 40 MiB for the program, its stack and the standard library of Nickel.
const LEAST_MEMORY: u64 = 64 * MIB;

const MIB: u64 = 1024 * 1024;

fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = number_and_unit(text)?;
    let unit = match unit {
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        _ => return Err("write a number with ms, s or m, such as 10s".to_owned()),
    };
    let factor = u32::try_from(number).unwrap_or(u32::MAX);
    let duration = unit.saturating_mul(factor);
    if duration.is_zero() || duration > LONGEST {
        return Err("it has to be between 1ms and 10m".to_owned());
    }
    Ok(duration)
}

fn memory(text: &str) -> Result<u64, String> {
    let (number, unit) = number_and_unit(text)?;
    let unit = match unit {
        "MiB" => MIB,
        "GiB" => 1024 * MIB,
        _ => return Err("write a number with MiB or GiB, such as 512MiB".to_owned()),
    };
    let bytes = number.saturating_mul(unit);
    if bytes < LEAST_MEMORY { Err("it has to be at least 64MiB".to_owned()) } else { Ok(bytes) }
}

fn number_and_unit(text: &str) -> Result<(u64, &str), String> {
    let (number, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    number.parse().map(|number| (number, unit)).map_err(|_| "it begins with no number".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::CommandFactory as _;

    use super::{Arguments, duration, memory};

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn times_and_sizes_are_read_with_their_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(memory("1GiB"), Ok(1 << 30));
    }

    #[test]
    fn what_has_no_unit_or_is_out_of_range_is_refused() {
        for text in ["", "10", "s", "10h", "0s", "11m", "99999999999999999999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "512", "512MB", "63MiB"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }
}
