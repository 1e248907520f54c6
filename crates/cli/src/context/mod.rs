//! Contexts: which server a command talks to, with which key, without flags and
//! variables.
//!
//! `file` keeps them in one file that only its owner reads; `choose` puts flags,
//! variables and the chosen context on top of each other; `commands` has `slipway
//! context` and `slipway login`; `local` is what `slipway up` writes. This is the
//! client's file: the settings of the control plane are elsewhere (`slipway up
//! --config`), and neither reads the other's.

pub(crate) mod commands;
pub(crate) mod login;

mod choose;
mod file;
mod local;

pub(crate) use choose::Connection;
pub use local::{LocalServer, Remembered, remember_local};
