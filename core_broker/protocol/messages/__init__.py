"""Requests and responses of the wire protocol, one module per API."""
