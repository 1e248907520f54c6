//! How people refer to deletions and leaks: by their ids.

use super::access::scope::project_of_deletion;

pub(crate) const DELETIONS: &str = by_id!(
    "deletions",
    concat!(project_of_deletion!("'project'", "'resource'", "'provisioned_resource'"), " = $4")
);

/// No project has leaks.
pub(crate) const LEAKS: &str = by_id!("leak_records", "1 = 0");
