//! The exit codes. Scripts branch on them, so a code never changes its
//! meaning; a new reason gets a new code.

use std::process::ExitCode;

/// How a command ended, with its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Success = 0,
    /// The server refused, something failed, or the user declined.
    Refused = 1,
    /// The command line or a setting is wrong; nothing was sent.
    Usage = 2,
    /// The server could not be reached.
    Unreachable = 3,
    /// No valid key, or one that may not do this.
    Unauthenticated = 4,
    NotFound = 5,
    /// `--wait` gave up; the server continues.
    TimedOut = 6,
    /// `--wait` saw the resource end in Failed.
    EndedInFailed = 7,
    /// `doctor` found a problem.
    Unwell = 8,
}

/// For `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  refused by the server, or failed
  2  wrong usage or configuration; nothing was sent
  3  the server cannot be reached
  4  not authenticated, or not allowed
  5  not found
  6  --wait gave up; the server goes on
  7  the resource ended in Failed
  8  `slipway doctor` found a problem";

impl Exit {
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented_once() {
        let all = [
            Exit::Success,
            Exit::Refused,
            Exit::Usage,
            Exit::Unreachable,
            Exit::Unauthenticated,
            Exit::NotFound,
            Exit::TimedOut,
            Exit::EndedInFailed,
            Exit::Unwell,
        ];
        let documented: Vec<_> = EXIT_CODES.lines().skip(1).map(|line| &line[..5]).collect();
        let expected: Vec<_> = all.iter().map(|exit| format!("  {}  ", exit.code())).collect();
        assert_eq!(documented, expected);
    }
}
