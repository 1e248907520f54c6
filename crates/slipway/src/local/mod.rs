//! Commands that work on an installation of this machine without its server:
//! settings, backup, restore.

pub(crate) mod backup;
pub(crate) mod files;
pub(crate) mod restore;
pub(crate) mod settings;
