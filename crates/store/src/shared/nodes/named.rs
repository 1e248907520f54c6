//! What nodes and bootstrap tokens are called: by their host name and by the handle of their
//! resource.

use super::broker::named::handle_of;

macro_rules! node_names {
    () => {
        concat!(
            names_of!("bootstrap_tokens d", handle_of_attempt!("d.provisioned_resource_id")),
            " UNION ALL ",
            names_of!("nodes d", "d.hostname")
        )
    };
}
pub(crate) use node_names;

pub(crate) const NODES: &str = called!(
    "nodes",
    concat!("d.hostname || ' of resource ' || ", handle_of!("d.resource_id")),
    "SELECT id FROM nodes WHERE hostname = $1 UNION ALL SELECT n.id FROM resources r \
     JOIN nodes n ON n.resource_id = r.id WHERE r.handle = $1",
    "d.deregistered_at IS NULL",
    "d.project_id = $4"
);

pub(crate) const TOKENS: &str = by_id!("bootstrap_tokens", "d.project_id = $4");
