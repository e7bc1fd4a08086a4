"""Starts it all, anywhere: the `caudal` command and what it runs."""
