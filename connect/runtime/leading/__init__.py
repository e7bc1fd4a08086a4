"""The leader: plans connectors, starts tasks, writes changes."""
