"""What the cluster is asked and told: topics, configs, groups, access rules."""
