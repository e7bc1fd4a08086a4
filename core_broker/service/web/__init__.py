"""HTTP services: one app, one way to tell errors, limits, counts, and the server that runs them."""
