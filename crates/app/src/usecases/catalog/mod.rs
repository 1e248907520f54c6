//! The use-cases of the catalog, one file per noun. They check names and texts
//! before they call the database; whatever depends on rows is a rule of the
//! core.

mod common;

pub mod blueprints;
pub mod clouds;
pub mod clusters;
pub mod credentials;
pub mod labels;
pub mod projects;
