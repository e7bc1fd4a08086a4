"""Where API v2 and API v3 differ in how they treat formats and schemas."""

import msgspec


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How one API treats formats and schemas."""

    mismatch_code: int
    """The error code for data that does not match its schema."""
    may_use_latest: bool
    """Whether data without a schema uses the latest one of its subject; otherwise it is refused."""
    format_names_schema: bool
    """Whether a format is given only together with the text of a schema: the request leaves it out if it gives the
    schema by id or version, and a format without schemas must not come with one. Otherwise a format is always given,
    and a schema that it does not use is ignored."""


V2 = Rules(mismatch_code=42203, may_use_latest=False, format_names_schema=False)
V3 = Rules(mismatch_code=400, may_use_latest=True, format_names_schema=True)
