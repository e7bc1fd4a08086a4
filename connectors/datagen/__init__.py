"""Datagen: records that look real, for trying things out."""
