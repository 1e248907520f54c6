//! `slipway workspace demo`: a workspace against a real control plane. Its servers come up in
//! the order of their dependencies, gates refuse what must not go, one worker is scaled down,
//! and a teardown takes the rest down in order. Each fact is checked through the API; the last
//! ones also in the list of processes, or at the provider.

mod arguments;
mod run;

mod order;
mod provider;
mod story;

pub(crate) use arguments::WorkspaceDemoArguments;
pub(crate) use run::run;
