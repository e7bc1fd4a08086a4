"""The worker that leads: connectors planned, tasks started, changes written."""
