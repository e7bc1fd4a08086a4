"""Topics as a source and a sink of Spark: `format("caudal")`, with the options of Spark's Kafka source."""
