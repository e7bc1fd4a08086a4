"""Configurations: plugins, options, providers, overrides and validation."""
