"""The samples of properties files: each service takes its own, and what stands in it as a proposal."""

import pytest

from core_broker.service.properties import parse_properties
from core_broker.service.settings import SettingsError
from deploy.stack import STACK, Service
from tests.support.deployment import DEPLOY, parse_settings


def _text(service: Service) -> str:
    return (DEPLOY / "config" / service.config_file).read_text()


def _proposed(service: Service) -> str:
    """The sample with its proposals in force."""
    head, _, offered = _text(service).partition("# Often changed:\n")
    return head + offered.replace("#", "")


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_a_service_takes_its_sample(service: Service) -> None:
    parse_settings(service.name, parse_properties(_text(service)))


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_a_service_takes_the_proposals_of_its_sample(service: Service) -> None:
    proposed = parse_properties(_proposed(service))
    assert len(proposed) > len(parse_properties(_text(service)))
    parse_settings(service.name, proposed)


def test_a_key_that_no_service_knows_would_be_noticed() -> None:
    with pytest.raises(SettingsError):
        parse_settings("registry", parse_properties(_text(STACK[1]) + "\ndatabase.uri=x\n"))


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_the_page_that_a_sample_names_is_there(service: Service) -> None:
    assert (DEPLOY.parent / service.settings_page).is_file()
    assert service.settings_page in _text(service)
