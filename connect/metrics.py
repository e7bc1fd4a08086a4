"""What a worker counts."""
