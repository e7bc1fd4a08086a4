"""Standard suites for connectors, which run without Kafka."""
