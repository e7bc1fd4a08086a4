"""Where clients find this proxy: the beginning of every address that it tells."""

import re
from collections.abc import Sequence

from fastapi import Request

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(:[0-9]{1,5})?")


def base_url(request: Request, advertised: Sequence[str]) -> str:
    """Such as `http://localhost:8082`: as advertised for the request's scheme, or as the request was sent."""
    scheme = request.scope["scheme"]
    for listener in advertised:
        if listener.startswith(f"{scheme}://"):
            return listener.rstrip("/")
    host = request.headers.get("host", "")
    if not _HOST.fullmatch(host):
        address, port = request.scope.get("server") or ("localhost", None)
        host = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    return f"{scheme}://{host}"
