//! What decisions write to the tables of nodes and tokens.

use crate::ids::ProvisionedResourceId;
use crate::nodes::node::Node;
use crate::nodes::token::BootstrapToken;

/// One row. An update of a node names its revision; a token has none.
#[derive(Debug, Clone, PartialEq)]
pub enum NodesWrite {
    TokenInsert(BootstrapToken),
    TokenUpdate(BootstrapToken),
    NodeInsert(Node),
    NodeUpdate(Node),
    /// The machine of an attempt of engine manual is gone.
    MachineRemove(ProvisionedResourceId),
}
