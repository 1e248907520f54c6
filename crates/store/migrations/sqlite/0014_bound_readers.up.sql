-- Whoever reaches one project only reads its events and deletions, and not
-- whole tables of everybody's.
CREATE INDEX outbox_events_project_id_position_index ON outbox_events (project_id, position)
    WHERE position IS NOT NULL;
CREATE INDEX deletions_target_id_index ON deletions (target_id);
-- A public key has one registered node in a project. Not unique: rows of older
-- versions may break it, and those still run beside this one.
CREATE INDEX nodes_project_id_public_key_index ON nodes (project_id, public_key)
    WHERE deregistered_at IS NULL;

-- The highest position of each project that was pruned, so that a reader of one
-- project is told to be too old only if something of its own is gone.
CREATE TABLE event_prunes (
    project_id BLOB NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL
) STRICT;
-- Up to where prunes are noted there, and up to where they were not. An older
-- version prunes without a note, and is known by `pruned_position` being ahead.
ALTER TABLE outbox_head ADD COLUMN noted_position INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox_head ADD COLUMN unnoted_position INTEGER NOT NULL DEFAULT 0;
