//! Why something could not be rendered. Reveals nothing of a token.

use slipway_core::error::Refusal;

use crate::cloud_init::RenderFailed;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Parameters(#[from] Refusal),
    #[error(transparent)]
    Document(#[from] RenderFailed),
    #[error("the project is not placed on a cluster")]
    NotPlaced,
    /// Published before the documents of a version were read, or for another engine.
    #[error(
        "version `{version}` of blueprint `{slug}` does not say what its composites are; publish a new version of it"
    )]
    NoCompositeType { slug: String, version: String },
    #[error(
        "blueprint `{slug}` hands the image of the node agent to a Helm release, and none is configured; set `node_image`"
    )]
    NoNodeImage { slug: String },
}
