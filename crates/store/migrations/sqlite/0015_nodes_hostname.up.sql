-- Nodes: people name them by their host name.

CREATE INDEX nodes_hostname_index ON nodes (hostname);
