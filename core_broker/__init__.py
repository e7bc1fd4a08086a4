"""A Kafka-compatible broker: Kafka clients and tools work with it unchanged."""
