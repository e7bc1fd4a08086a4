"""What happens to records that fail."""
