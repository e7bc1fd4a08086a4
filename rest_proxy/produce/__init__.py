"""Records on their way to Kafka: producers by guarantee; for each API its requests, its sender and its results."""
