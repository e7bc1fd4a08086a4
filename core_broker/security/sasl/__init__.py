"""SASL: how clients prove who they are. The mechanisms are state machines without I/O."""
