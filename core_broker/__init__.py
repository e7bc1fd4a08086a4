"""A broker that Kafka clients cannot tell from Kafka."""
