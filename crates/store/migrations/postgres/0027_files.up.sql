-- Files: the fields that a source wrote of an object.

CREATE TABLE declared_objects (
    id UUID NOT NULL PRIMARY KEY,
    source TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    subject_id UUID NOT NULL,
    project_id UUID,
    fields JSONB NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

CREATE UNIQUE INDEX declared_objects_source_kind_path_key ON declared_objects (source, kind, path);
CREATE INDEX declared_objects_path_index ON declared_objects (kind, path);
CREATE INDEX declared_objects_subject_index ON declared_objects (subject_id);
CREATE INDEX declared_objects_source_index ON declared_objects (source, id);
