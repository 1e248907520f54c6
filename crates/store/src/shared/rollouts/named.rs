//! What roll-outs are called: by what their members belong to.

pub(crate) const ROLLOUTS: &str = called!(
    "rollouts",
    "d.name",
    "SELECT id FROM rollouts WHERE name = $1",
    "d.ended_at IS NULL",
    "d.project_id = $4"
);
