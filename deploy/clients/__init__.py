"""What the tools talk to: a cluster, a registry, a Connect worker; and what their failures mean to a user."""
