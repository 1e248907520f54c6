DROP INDEX stacks_settled_object_id_index;
DROP INDEX stacks_rollout_id_index;
ALTER TABLE stacks DROP COLUMN rolls_back;
ALTER TABLE stacks DROP COLUMN settled_object_id;
ALTER TABLE stacks DROP COLUMN rollout_id;
ALTER TABLE stacks DROP COLUMN strategy;
