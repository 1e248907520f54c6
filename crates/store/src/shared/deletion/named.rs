//! How people refer to deletions and leaks: by their ids.

pub(crate) const DELETIONS: &str = by_id!("deletions", "d.project_id = $4");

/// No project has leaks.
pub(crate) const LEAKS: &str = by_id!("leak_records", "1 = 0");
