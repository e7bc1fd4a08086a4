"""Options that the commands of the platform share: which one is meant."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.launcher.request import DATA_VARIABLE

DataOption = Annotated[
    Path,
    typer.Option(
        "--data",
        "-d",
        envvar=DATA_VARIABLE,
        metavar="DIR",
        help="Folder of the platform: everything that it keeps is in there.",
    ),
]
