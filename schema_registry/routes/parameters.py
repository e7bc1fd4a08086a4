"""Types of query parameters, for the signatures of the routes."""

from typing import Annotated

from fastapi import Query

Flag = Annotated[bool, Query()]
"""`true` or `false`; false by default."""

Words = Annotated[list[str], Query(max_length=1000)]
"""A parameter that may be given several times."""

Offset = Annotated[int, Query(ge=0, le=2**31 - 1)]
"""How many entries to skip at the start of a list."""

Limit = Annotated[int, Query(ge=-1, le=2**31 - 1)]
"""Maximum number of entries to return; -1 for all."""
