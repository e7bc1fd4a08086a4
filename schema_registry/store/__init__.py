"""Schemas, versions, configs and modes in SQL."""
