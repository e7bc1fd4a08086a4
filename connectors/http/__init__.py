"""HTTP: a sink that sends records to an API, and a source that polls an API."""
