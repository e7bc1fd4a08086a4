import subprocess
import sys

import pytest


@pytest.mark.processes
@pytest.mark.parametrize(
    "service,library",
    [
        ("broker", "crc32c"),
        ("registry", "sqlalchemy"),
        ("rest-proxy", "fastapi"),
        ("connect", "fastapi"),
        ("connect-worker", "celery"),
    ],
)
def test_a_service_whose_libraries_are_not_installed_says_how_to_get_them(service: str, library: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; from deploy.cli import main; sys.exit(main([{service!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"caudal {service} needs the package {library}, which is not installed.",
        "Install Caudal with everything that its services need, e.g. pip install 'caudal[all] @ ...'.",
    ]
