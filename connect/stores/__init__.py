"""What Connect remembers, in compacted topics."""
