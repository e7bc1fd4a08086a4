"""Settings that were handed over are the same."""

from connect.executors.hosts.process import settings_text
from connect.settings import ConnectSettings


def test_settings_that_are_handed_over_are_equal() -> None:
    settings = ConnectSettings.parse(
        {
            "bootstrap.servers": "a:1,b:2",
            "client.sasl.password": "p=,\n",
            "key.converter.schemas.enable": "false",
            "topic.creation.enable": "false",
            "celery.broker.url": "redis://:secret@host/1",
            "task.processes": "-1",
            "config.providers": "file",
            "config.providers.file.param.allowed.paths": "/a",
        }
    )
    assert ConnectSettings.parse(settings_text(settings)) == settings


def test_nothing_is_handed_over_when_nothing_was_set() -> None:
    assert settings_text(ConnectSettings(rest_advertised_port=None)) == {}
