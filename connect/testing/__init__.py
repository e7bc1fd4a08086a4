"""Standard suites that every connector passes, and what they need to run without Kafka."""
