"""What paths and queries carry, as types for the routes' signatures."""

from typing import Annotated

from fastapi import Query

Flag = Annotated[bool, Query()]
"""`true` or `false`; not given means false."""

Words = Annotated[list[str], Query(max_length=1000)]
"""A parameter that may be given several times."""

Offset = Annotated[int, Query(ge=0, le=2**31 - 1)]
"""How many entries of a list are left out at its start."""

Limit = Annotated[int, Query(ge=-1, le=2**31 - 1)]
"""How many entries a list has at most; -1 for all."""
