-- Roll-outs: one change brought to many members, in order and within limits.

CREATE TABLE rollouts (
    id BLOB NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL DEFAULT 1,
    purpose TEXT NOT NULL,
    -- What all members belong to.
    subject_kind TEXT NOT NULL,
    subject_id BLOB NOT NULL,
    name TEXT NOT NULL,
    -- Only members of this project; null means those of all projects.
    project_id BLOB,
    change TEXT NOT NULL,
    strategy TEXT NOT NULL,
    state TEXT NOT NULL,
    message TEXT,
    requested_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    requested_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000000.0) AS INTEGER)),
    ended_at INTEGER
) STRICT;
-- One at a time for each project, and one for all: whether those meet is decided with the
-- subject's row locked.
CREATE UNIQUE INDEX rollouts_subject_key
    ON rollouts (subject_id, project_id) WHERE ended_at IS NULL AND project_id IS NOT NULL;
CREATE UNIQUE INDEX rollouts_subject_of_all_key
    ON rollouts (subject_id) WHERE ended_at IS NULL AND project_id IS NULL;
CREATE INDEX rollouts_name_index ON rollouts (name);
CREATE INDEX rollouts_ended_at_index ON rollouts (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE rollout_members (
    rollout_id BLOB NOT NULL REFERENCES rollouts (id) ON DELETE RESTRICT,
    subject_kind TEXT NOT NULL,
    subject_id BLOB NOT NULL,
    name TEXT NOT NULL,
    wave INTEGER NOT NULL,
    position INTEGER NOT NULL,
    state TEXT NOT NULL,
    -- What it had before it was changed.
    before TEXT NOT NULL,
    changed_at INTEGER,
    message TEXT,
    PRIMARY KEY (rollout_id, subject_id)
) STRICT;
CREATE INDEX rollout_members_state_index ON rollout_members (rollout_id, state, wave, position);
