"""Stateful steps that Spark's SQL does not have: sessions, changes of tables, aggregates that are taken back, joins."""
