"""What the broker does for each Kafka API, one module per API."""
