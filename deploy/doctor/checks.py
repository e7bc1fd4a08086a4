"""Every check, in the order in which people read them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from deploy.doctor import data, folder, java, logs, machine, ports, python, services, variables
from deploy.doctor.finding import Finding
from deploy.doctor.surroundings import Surroundings
from deploy.stack import STACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that is looked at."""

    group: str
    name: str
    look: Callable[[Surroundings], Iterator[Finding]]
    seconds_max: float = 5.0
    """When it has not ended by then, that is what is told about it; the time for answers of services comes on top."""


_INSTALLATION: Final = "Installation"
_MACHINE: Final = "Machine"
_ENVIRONMENT: Final = "Environment"
_PLATFORM: Final = "Platform"

CHECKS: Final = (
    Check(group=_INSTALLATION, name="Python", look=python.python_version),
    Check(group=_INSTALLATION, name="Packages", look=python.packages, seconds_max=25.0),
    Check(group=_INSTALLATION, name="Java", look=java.java),
    Check(group=_MACHINE, name="Memory", look=machine.memory),
    Check(group=_MACHINE, name="Disk", look=folder.room),
    Check(group=_MACHINE, name="Data folder", look=folder.writable),
    Check(group=_MACHINE, name="Open files", look=machine.open_files),
    Check(group=_MACHINE, name="Ports", look=ports.ports),
    Check(group=_MACHINE, name="Clock", look=machine.clock),
    Check(group=_MACHINE, name="Optional tools", look=machine.tools),
    Check(group=_ENVIRONMENT, name="Variables", look=variables.variables),
    Check(group=_ENVIRONMENT, name="Spark's variables", look=java.spark_variables),
    Check(group=_PLATFORM, name="Platform", look=services.platform),
    *(
        Check(group=_PLATFORM, name=f"Service: {service.name}", look=partial(services.service, name=service.name))
        for service in STACK
    ),
    Check(group=_PLATFORM, name="Cluster", look=data.cluster),
    Check(group=_PLATFORM, name="Schemas", look=data.registry),
    Check(group=_PLATFORM, name="Connectors", look=data.connectors),
    Check(group=_PLATFORM, name="Dead letters", look=data.dead_letters),
    Check(group=_PLATFORM, name="Spark", look=data.spark),
    Check(group=_PLATFORM, name="Logs", look=logs.logs),
)
