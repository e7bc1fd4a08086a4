"""Spark for the other packages: the engine, topics as sources and sinks, decoding by schema id, tables."""
