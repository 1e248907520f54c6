//! `slipway explain`.

use clap::{Args, ValueEnum};

/// What can be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Resource,
    Node,
    Deletion,
    Project,
    Cluster,
    Token,
    Leak,
}

#[derive(Debug, Clone, Args)]
pub struct ExplainArguments {
    /// What kind of thing
    #[arg(value_enum, value_name = "KIND")]
    pub kind: Kind,
    /// Its id; a resource also by its handle, a node by its host name, a project and a cluster
    /// by their names
    #[arg(value_name = "ID-OR-NAME")]
    pub target: String,
    /// The project of a handle (name or id)
    #[arg(long)]
    pub project: Option<String>,
}
