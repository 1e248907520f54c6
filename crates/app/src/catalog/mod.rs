//! The catalog, one file per kind. The use-cases check names and texts before
//! they call the database; whatever depends on rows is a rule of the core.

pub mod port;

pub mod blueprints;
pub mod clouds;
pub mod credentials;
pub mod labels;
pub mod projects;
