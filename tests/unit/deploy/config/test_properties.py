"""The sample properties files: what the stack says, and settings that each service has, also where commented out."""

import re

import pytest

from core_broker.service.properties import parse_properties
from deploy.stack import STACK, Service
from tests.support.deployment import DEPLOY, parse_settings, stack_settings


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_a_service_takes_its_sample_and_all_that_it_proposes(service: Service) -> None:
    text = (DEPLOY / "config" / service.config_file).read_text()
    settings = parse_properties(text)
    assert stack_settings(service.name, data=f"/var/lib/caudal/{service.name}", host="localhost") == settings
    proposed = parse_properties(re.sub(r"^#(?=\S)", "", text, flags=re.MULTILINE))
    assert len(proposed) > len(settings)
    parse_settings(service.name, settings)
    parse_settings(service.name, proposed)


@pytest.mark.parametrize("service", STACK, ids=lambda service: service.name)
def test_a_sample_names_the_page_with_all_settings(service: Service) -> None:
    assert (DEPLOY.parent / service.settings_page).is_file()
    assert service.settings_page in (DEPLOY / "config" / service.config_file).read_text()
