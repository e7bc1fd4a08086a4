"""The base of the URLs in responses: where clients reach this proxy."""

import re
from collections.abc import Sequence

from fastapi import Request

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(:[0-9]{1,5})?")


def base_url(request: Request, advertised: Sequence[str]) -> str:
    """Such as `http://localhost:8082`: the advertised listener for the request's scheme, or else the request's host."""
    scheme = request.scope["scheme"]
    for listener in advertised:
        if listener.startswith(f"{scheme}://"):
            return listener.rstrip("/")
    host = request.headers.get("host", "")
    if not _HOST.fullmatch(host):
        address, port = request.scope.get("server") or ("localhost", None)
        host = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    return f"{scheme}://{host}"
