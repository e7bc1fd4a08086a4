import importlib.metadata

import pytest

from deploy.doctor.finding import Context, Level
from deploy.doctor.python import packages, python_version, requirement_problem, requirements_of

_LINES = [
    "rich>=14",
    "alembic>=1.16; extra == 'registry'",
    "caudal[serdes]; extra == 'registry'",
    "fastavro>=1.12; extra == 'serdes'",
    "pyspark[connect]>=4; extra == 'spark'",
    "tomli>=2; python_version < '3.0'",
]


def test_requirements_of_an_extra_are_its_own_those_of_the_extras_it_names_and_everybodys() -> None:
    assert {item.name for item in requirements_of(_LINES, ("registry",)).values()} == {"rich", "alembic", "fastavro"}
    assert {item.name for item in requirements_of(_LINES, ()).values()} == {"rich"}


def test_package_that_is_missing_or_too_old_is_reported() -> None:
    found = requirements_of(["no-such-package>=1", "rich>=1000", "rich>=14"], ())
    version = importlib.metadata.version("rich")
    output = [requirement_problem(requirement) for requirement in found.values()]
    assert output == ["no-such-package is missing", f"rich is {version}, but >=1000 is needed", ""]


@pytest.mark.processes
def test_python_and_packages_of_this_environment_are_well(context: Context) -> None:
    found = [*python_version(context), *packages(context)]
    assert {finding.subject for finding in found} >= {"Python", "Packages: broker", "Packages: spark"}
    assert not [finding for finding in found if finding.level is Level.PROBLEM]
