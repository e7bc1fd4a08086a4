"""Bytes on disk: partition logs, segments, indexes, recovery, retention, compaction and producer state."""
