"""Kafka clients for each caller, never used for another one."""
