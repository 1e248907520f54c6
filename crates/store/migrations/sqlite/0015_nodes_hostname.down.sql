DROP INDEX nodes_hostname_index;
