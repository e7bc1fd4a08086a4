"""The REST API in front of a worker that keeps everything in memory."""

from collections.abc import AsyncIterator

import pytest

from tests.support.connect_api import Api, serve


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    """The API with the settings that it has by itself."""
    async with serve() as client:
        yield client
