"""Transactions: a state machine without I/O, and the coordinator that carries out what it decides."""
