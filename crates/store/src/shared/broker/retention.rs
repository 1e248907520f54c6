//! Names the subjects whose audit is kept.
//!
//! "Deleted" refers to the declared slot: a failed attempt of a resource that
//! still exists keeps its history and its entries. So does a resource of which something
//! may still exist outside.

/// The id is that of a resource that is not deleted or has an open leak record, or of an
/// attempt of one.
macro_rules! live_resource_or_attempt {
    ($id:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM resources r WHERE r.id = ",
            $id,
            " AND r.deleted_at IS NULL) OR EXISTS (SELECT 1 FROM provisioned_resources a \
             JOIN resources r ON r.id = a.resource_id WHERE a.id = ",
            $id,
            " AND r.deleted_at IS NULL) OR EXISTS (SELECT 1 FROM provisioned_resources a \
             WHERE (a.resource_id = ",
            $id,
            " OR a.id = ",
            $id,
            ") AND ",
            open_leak!("l.subject_id = a.id"),
            ")"
        )
    };
}
pub(crate) use live_resource_or_attempt;
