-- Roll-outs: one change brought to many members, in order and within limits.

CREATE TABLE rollouts (
    id uuid NOT NULL PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 1,
    purpose text COLLATE "C" NOT NULL,
    -- What all members belong to.
    subject_kind text COLLATE "C" NOT NULL,
    subject_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    -- Only members of this project; null means those of all projects.
    project_id uuid,
    change jsonb NOT NULL,
    strategy jsonb NOT NULL,
    state text COLLATE "C" NOT NULL,
    message text COLLATE "C",
    requested_by text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    ended_at timestamptz
);
-- One at a time for each project, and one for all: whether those meet is decided with the
-- subject's row locked.
CREATE UNIQUE INDEX rollouts_subject_key
    ON rollouts (subject_id, project_id) WHERE ended_at IS NULL AND project_id IS NOT NULL;
CREATE UNIQUE INDEX rollouts_subject_of_all_key
    ON rollouts (subject_id) WHERE ended_at IS NULL AND project_id IS NULL;
CREATE INDEX rollouts_name_index ON rollouts (name);
CREATE INDEX rollouts_ended_at_index ON rollouts (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE rollout_members (
    rollout_id uuid NOT NULL REFERENCES rollouts (id) ON DELETE RESTRICT,
    subject_kind text COLLATE "C" NOT NULL,
    subject_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    wave integer NOT NULL,
    position integer NOT NULL,
    state text COLLATE "C" NOT NULL,
    -- What it had before it was changed.
    before jsonb NOT NULL,
    changed_at timestamptz,
    message text COLLATE "C",
    PRIMARY KEY (rollout_id, subject_id)
);
CREATE INDEX rollout_members_state_index ON rollout_members (rollout_id, state, wave, position);
