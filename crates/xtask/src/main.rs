//! `cargo xtask`: see the library of this crate for what each chore does.

use std::process::ExitCode;

fn main() -> ExitCode {
    slipway_xtask::command_line::run(std::env::args().skip(1))
}
