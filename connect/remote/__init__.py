"""The sink pipeline for engines that move records outside of the worker."""
