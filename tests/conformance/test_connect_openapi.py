"""Connect's OpenAPI document is valid, and made-up requests are answered as it says."""

import asyncio
import sys
from pathlib import Path

import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from core_broker.service.web.server import serving
from core_broker.service.web.settings import WebSettings
from tests.support.connect_api import serve

_CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
_OPTIONS = {
    "checks": _CHECKS,
    "phases": "coverage,fuzzing",
    "max-examples": "3",
    "seed": "1",
    "workers": "1",
    "request-timeout": "20",
    "generation-database": "none",
    "suppress-health-check": "all",
    "warnings": "off",
}


async def test_the_document_is_valid() -> None:
    async with serve() as api:
        OPENAPI_31_VALIDATOR.validate((await api.get("/openapi.json")).json())


@pytest.mark.timeout(600)
async def test_made_up_requests_are_answered_as_the_document_says(tmp_path: Path) -> None:
    settings = WebSettings.parse({"listeners": "http://127.0.0.1:0", "shutdown.timeout.ms": "0"})
    async with serve(number=4) as api, serving(api.app, settings) as (url,):
        await api.create("orders-to-file")
        command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{url}/openapi.json"]
        words = [f"--{key}={value}" for key, value in _OPTIONS.items()]
        run = await asyncio.create_subprocess_exec(
            *command,
            *words,
            "--continue-on-failure",
            "--no-color",
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        told, _ = await asyncio.wait_for(run.communicate(), timeout=500)
    assert run.returncode == 0, told[-5000:].decode(errors="replace")
