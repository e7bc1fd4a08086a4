"""What other machinery reads of the platform: compose files, chart, units, scrape configuration, dashboards, samples.

Made from `deploy/stack.py` by `python -m deploy.manifests`, so that no port, name or setting is told twice.
"""
