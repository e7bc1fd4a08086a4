"""The application for the `celery` command: `celery -A connect.executors.celery.app worker --concurrency 8`.

The settings are those of a Connect worker: from environment variables CONNECT_… and the file in CAUDAL_CONNECT_CONFIG.
"""

import os
from pathlib import Path
from typing import Final

from connect.executors.celery.tasks import create_app, serve
from connect.runtime.tasks.services import LazyServices
from connect.settings import ConnectSettings
from core_broker.service.properties import gather

FILE_VARIABLE: Final = "CAUDAL_CONNECT_CONFIG"


def settings_from_environment() -> ConnectSettings:
    """The settings of this process."""
    file = os.environ.get(FILE_VARIABLE)
    values = gather(file=Path(file) if file else None, environment=os.environ, prefix="CONNECT_")
    return ConnectSettings.parse(values)


_settings = settings_from_environment()
app = serve(create_app(_settings), LazyServices(_settings))
