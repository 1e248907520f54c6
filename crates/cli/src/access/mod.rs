//! Who may use the API, and who did what.

pub(crate) mod audit;
pub(crate) mod key;
