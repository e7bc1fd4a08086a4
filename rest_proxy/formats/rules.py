"""Where API v2 and API v3 differ about keys and values."""

import msgspec


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What one API makes of formats and schemas."""

    unfit_code: int
    """The error of data that does not fit its schema."""
    may_use_latest: bool
    """Whether data without a schema is written by the latest one of its subject; otherwise it is refused."""
    format_names_schema: bool
    """Whether a format stands for a schema's text alone: it is left out where the schema is named in another way, and
    a format without schemas must not come with one. Otherwise it stands for itself, and such a schema is ignored."""


V2 = Rules(unfit_code=42203, may_use_latest=False, format_names_schema=False)
V3 = Rules(unfit_code=400, may_use_latest=True, format_names_schema=True)
