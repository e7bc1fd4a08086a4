"""Protobuf with schemas in a registry."""
