"""Kafka's wire format, without any I/O: primitives, messages, frames, record batches, compression."""
