//! `slipway-soak`: see the library of this crate for what a soak does.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    slipway_soak::command_line(&arguments)
}
