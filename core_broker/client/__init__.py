"""Kafka for the other packages: producer, consumer and admin over confluent-kafka, which only this door imports."""
