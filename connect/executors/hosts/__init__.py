"""Host processes of a worker, in which tasks run."""
