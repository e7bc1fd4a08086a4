"""Composition: stores, supervisor, executors and the REST API become one running worker."""
