"""Records from HTTP to Kafka, each with its own outcome."""
