"""How any process of the platform runs: settings, logs, metrics, lifecycle, clock. Cheap to import."""
