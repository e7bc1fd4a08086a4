"""Tasks: records between a connector and Kafka."""
