"""Administration of the cluster: topics, configs, partitions, groups, lag, ACLs."""
