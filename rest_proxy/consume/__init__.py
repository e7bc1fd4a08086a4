"""Records from Kafka to HTTP: consumer instances, pages and live streams."""
