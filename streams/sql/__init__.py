"""SQL over topics: the statements of ksqlDB, run by Spark."""
