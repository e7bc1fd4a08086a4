"""Moves data between Kafka and elsewhere: connectors configured with JSON, as Kafka Connect runs them."""
