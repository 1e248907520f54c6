-- Every event is written twice, by the decision that announces it and by the
-- relay that numbers it. Its sibling for PostgreSQL also drops the reference to
-- the type, which costs nothing here.
--
-- An id is derived from what is unique already (docs/adr/0002-event-ids-are-derived.md).
DROP INDEX outbox_events_id_key;
DROP INDEX outbox_events_position_key;
CREATE UNIQUE INDEX outbox_events_position_key ON outbox_events (position)
    WHERE position IS NOT NULL;
