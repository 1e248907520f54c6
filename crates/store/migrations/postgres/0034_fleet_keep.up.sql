-- Fleet: deletions that agents let go of instead of removing, content that is erased before its
-- rows may go, and how long a generator keeps what was deleted.

-- 0 or 1: whether its last heartbeat said that it can let go.
ALTER TABLE fleet_agents ADD COLUMN can_keep integer NOT NULL DEFAULT 0;
-- 0 or 1: a marker that tells agents to let go of what the stack has deployed.
ALTER TABLE deployment_objects ADD COLUMN keeps integer NOT NULL DEFAULT 0;
-- When the content was overwritten.
ALTER TABLE deployment_objects ADD COLUMN erased_at timestamptz;
-- In microseconds; null leaves it to the settings of deletions.
ALTER TABLE generators ADD COLUMN retention bigint;

-- 0 or 1: its markers tell agents to let go.
ALTER TABLE deletions ADD COLUMN keep integer NOT NULL DEFAULT 0;
-- How many stacks it takes away, counted at the request.
ALTER TABLE deletions ADD COLUMN stacks bigint NOT NULL DEFAULT 0;
-- 0 or 1: content goes at once, rows when nothing needs them any more.
ALTER TABLE deletions ADD COLUMN erases integer NOT NULL DEFAULT 0;

-- Old reports are removed.
CREATE INDEX agent_reports_last_at_index ON agent_reports (last_at);

-- What goes with a project carries its deletion.
CREATE INDEX generators_deletion_id_index
    ON generators (deletion_id) WHERE deletion_id IS NOT NULL;
CREATE INDEX fleet_agents_deletion_id_index
    ON fleet_agents (deletion_id) WHERE deletion_id IS NOT NULL;
