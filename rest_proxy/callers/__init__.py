"""Kafka clients for each caller: nobody ever uses those of another."""
