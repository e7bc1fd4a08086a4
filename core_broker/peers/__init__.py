"""Requests to other nodes of the cluster."""
