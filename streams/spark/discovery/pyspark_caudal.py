# ruff: noqa: INP001 -- this folder is on the path, and so no package
"""How Spark finds the source by itself: it looks for modules whose names begin so, each with a `DefaultSource`.

The folder of this module stands on the PYTHONPATH of Spark's JVM, so `format("caudal")` works in every session.
"""

from streams.spark.topics.source import TopicSource as DefaultSource

__all__ = ["DefaultSource"]
