"""Whether this machine has a Java that Spark runs on (JAVA_HOME, else the path)."""

import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import pytest

OLDEST_JAVA: Final = 17
_TIMEOUT_S: Final = 30.0


@cache
def java_problem() -> str | None:
    """Why Spark cannot start here; None when it can."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else "java"
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"no Java: {error}"
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    version = int(found[1]) if found else 0
    return None if version >= OLDEST_JAVA else f"Java {version} is too old: Spark needs {OLDEST_JAVA} or newer"


needs_java = pytest.mark.skipif(java_problem() is not None, reason=java_problem() or "")
"""Skips tests that start Spark where it cannot start."""
