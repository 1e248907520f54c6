//! Topology: workspaces of servers with roles. A *workspace* is declared; it has *groups* of
//! *servers*, which are resources that it owns. The *gates* say whether a server may go, and
//! the *graph* of dependencies says in which order servers come and, inverted, how a teardown
//! takes them down.

pub mod apply;
pub mod declared;
pub mod event;
pub mod gates;
pub mod graph;
pub mod group;
pub mod inventory;
pub mod next;
pub mod owner;
pub mod plan;
pub mod role;
pub mod rollout;
pub mod scale;
pub mod server;
pub mod teardown;
pub mod workspace;
pub mod write;

pub use write::TopologyWrite;
