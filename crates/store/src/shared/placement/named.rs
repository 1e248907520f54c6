//! What clusters are called.

macro_rules! cluster_names {
    () => {
        names_of!("clusters d", "d.name")
    };
}
pub(crate) use cluster_names;

pub(crate) const CLUSTERS: &str = called!(
    "clusters",
    "d.name",
    "SELECT id FROM clusters WHERE name = $1",
    "d.deleted_at IS NULL",
    "1 = 1"
);
