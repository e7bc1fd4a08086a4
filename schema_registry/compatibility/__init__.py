"""May this schema follow that one? Pure functions that report every difference."""
