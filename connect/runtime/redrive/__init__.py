"""Lists dead letters, and redrives them."""
