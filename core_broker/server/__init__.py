"""Sockets: the listener, its connections, and the dispatch of requests to handlers."""
