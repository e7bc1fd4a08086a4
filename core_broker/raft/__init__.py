"""The quorum of the metadata log as a state machine without I/O (KIP-595, KIP-853, KIP-996)."""
