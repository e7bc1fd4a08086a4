"""How long a test waits for work that must end."""

from typing import Final

PATIENCE_S: Final = 10.0
"""Far more than bounded work takes on a slow and busy machine, and nothing beside work that grows without bound.

What hostile input really costs is measured where it is found, and told in the notes of a change; no test asserts it.
"""
