-- Fleet: whether an agent holds the newest content of its stacks is found without reading objects.

-- The number of the object, if it is content for all agents; null for a marker.
ALTER TABLE holdings ADD COLUMN sequence_id bigint;
UPDATE holdings SET sequence_id = (SELECT o.sequence_id FROM deployment_objects o
    WHERE o.id = holdings.object_id AND o.agent_id IS NULL AND o.is_deletion_marker = 0);
