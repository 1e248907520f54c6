//! Nodes: the registry, bootstrap tokens, the mesh of a project, and how a node
//! enrols, drains and leaves.

pub mod mesh;
pub mod node;
pub mod token;
pub mod write;

pub mod drain;
pub mod enrol;
pub mod machine;
pub mod reenrol;
pub mod tokens_by_hand;

pub use write::NodesWrite;
