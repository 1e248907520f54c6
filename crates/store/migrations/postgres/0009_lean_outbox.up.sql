-- Every event is written twice, by the decision that announces it and by the
-- relay that numbers it, and each time into all indexes. This leaves the key
-- that an older relay joins by, who may not be announced twice, what waits for
-- its number, and what is read by it.
--
-- Announcing locked the row of its type, so all decisions that announced the
-- same met in one row. The type comes from a closed set of our own, which a
-- test holds against the reference table.
ALTER TABLE outbox_events DROP CONSTRAINT outbox_events_event_type_fkey;
-- An id is derived from what is unique already (docs/adr/0002-event-ids-are-derived.md).
DROP INDEX outbox_events_id_key;
DROP INDEX outbox_events_position_key;
CREATE UNIQUE INDEX outbox_events_position_key ON outbox_events (position)
    WHERE position IS NOT NULL;
