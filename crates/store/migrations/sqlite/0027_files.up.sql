-- Files: the fields that a source wrote of an object.

CREATE TABLE declared_objects (
    id BLOB NOT NULL PRIMARY KEY,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    path TEXT NOT NULL,
    subject_id BLOB NOT NULL,
    project_id BLOB,
    fields TEXT NOT NULL,
    origin TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX declared_objects_source_kind_path_key ON declared_objects (source, kind, path);
CREATE INDEX declared_objects_path_index ON declared_objects (kind, path);
CREATE INDEX declared_objects_subject_index ON declared_objects (subject_id);
CREATE INDEX declared_objects_source_index ON declared_objects (source, id);
