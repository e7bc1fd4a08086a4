"""Queries of SQL over topics, as Spark runs them: plans become streaming queries, each batch one Kafka transaction."""
