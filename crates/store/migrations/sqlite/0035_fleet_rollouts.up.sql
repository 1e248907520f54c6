-- Roll-outs of stacks: an object reaches agents in order and within limits.

-- How; null brings each object to all agents at once.
ALTER TABLE stacks ADD COLUMN strategy TEXT;
-- The roll-out that says who may have the newest object; null lets everybody have it. It stays
-- after an abort, until there is a newer object.
ALTER TABLE stacks ADD COLUMN rollout_id BLOB;
-- What everybody had before: an agent without anything gets that meanwhile.
ALTER TABLE stacks ADD COLUMN settled_object_id BLOB;
-- 0 or 1: the newest object is the one that the roll-out goes back to.
ALTER TABLE stacks ADD COLUMN rolls_back INTEGER NOT NULL DEFAULT 0;
CREATE INDEX stacks_rollout_id_index ON stacks (rollout_id) WHERE rollout_id IS NOT NULL;
CREATE INDEX stacks_settled_object_id_index
    ON stacks (settled_object_id) WHERE settled_object_id IS NOT NULL;
