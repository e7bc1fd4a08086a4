"""Kafka-Streams- and ksqlDB-like processing of topics on Spark, and Spark itself: engine, topics, tables."""
