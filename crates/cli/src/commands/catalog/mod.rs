//! The catalog's commands, one file per noun.

pub(super) mod blueprints;
pub(crate) mod bundle;
pub(super) mod clouds;
pub(super) mod clusters;
pub(super) mod credentials;
pub(crate) mod import;
pub(super) mod labels;
pub(super) mod projects;
