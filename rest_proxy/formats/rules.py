"""Where API v2 and API v3 differ about keys and values."""

import msgspec


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What one API makes of data and schemas."""

    unfit_code: int
    """The error of data that is not what its format or schema asks for."""
    may_use_latest: bool
    """Whether data without a schema is written by the latest one of its subject; otherwise it is refused."""
    checks_subject: bool
    """Whether a schema that is named by its id must be registered under the subject of the data, too."""
    format_names_schema: bool
    """Whether a format stands for a schema's text alone, and is left out where a schema is named in another way."""


V2 = Rules(unfit_code=42203, may_use_latest=False, checks_subject=False, format_names_schema=False)
V3 = Rules(unfit_code=400, may_use_latest=True, checks_subject=True, format_names_schema=True)
