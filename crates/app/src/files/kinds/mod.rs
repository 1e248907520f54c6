//! How each kind is read as a document, created and changed.

pub(super) mod blueprint;
pub(super) mod catalog;
pub(super) mod credential;
pub(super) mod fleet;
pub(super) mod key;
pub(super) mod placement;
pub(super) mod resource;
pub(super) mod rows;
pub(super) mod tenants;
pub(super) mod topology;
