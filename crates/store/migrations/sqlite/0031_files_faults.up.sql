-- Files: what the last apply of a source could not apply. The project is that of the key that
-- applied, or the nil id.

CREATE TABLE file_faults (
    source TEXT NOT NULL,
    project_id BLOB NOT NULL,
    faults TEXT NOT NULL,
    total INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (source, project_id)
) STRICT;

CREATE INDEX file_faults_updated_at_index ON file_faults (updated_at);
