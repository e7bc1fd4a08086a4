"""The registry for the other packages: settings, errors, and a client with bounded caches."""
