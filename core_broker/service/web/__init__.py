"""The layer that all HTTP services share: app, error responses, limits, request counts, server and settings."""
