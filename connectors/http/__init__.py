"""HTTP: a sink that sends records to an API, and a source that asks an API for news."""
