-- Files: what the last apply of a source could not apply. The project is that of the key that
-- applied, or the nil id.

CREATE TABLE file_faults (
    source TEXT COLLATE "C" NOT NULL,
    project_id UUID NOT NULL,
    faults JSONB NOT NULL,
    total INTEGER NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (source, project_id)
);

CREATE INDEX file_faults_updated_at_index ON file_faults (updated_at);
