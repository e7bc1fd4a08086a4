"""Secrets in configurations: which values they are, and configurations as they are shown.

A value is secret if its option is a PASSWORD, if its key says so (`….password`, `….token`, `sasl.jaas.config`), or if
it looks like credentials: an Authorization header, a private key, the password in a URL. Placeholders such as
`${file:/run/secrets/db:password}` are no secrets, and shown.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

from connect.api.errors import ConfigError
from connect.runtime.configuration.config_infos import Section, section_of
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugin_sections import converter_sections, stage_sections
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.errors import BadRequest

MASK: Final = "********"
"""Stands for a secret where configurations are shown."""

_SECRET_NAME: Final = re.compile(
    r"(?i)(password|passwd|passphrase|pwd|secret|jaas\.config|token|credentials?|user\.info|authorization"
    r"|(secret|access|api|private|account|storage)[._-]?key|key\.pem|keystore\.key|sas)"
)
_IN_URL: Final = re.compile(r"(://[^/?#\s:@]*:(?!\d+/)(?=[^\s@]+@)|\w:(?!//|\d+/)(?=[^\s@:]+@))([^\s@]+)(?=@)")
_IN_QUERY: Final = re.compile(
    r"(?i)([?&;,](?:[\w.-]*(?:password|passwd|pwd|passphrase|secret|token|api[._-]?key|access[._-]?key)|sig)=)([^&;,\s]+)"
)
_CREDENTIALS: Final = re.compile(
    r"(?i)\b(?:bearer|basic)\s+\S{6,}|-----BEGIN [A-Z ]*PRIVATE KEY|LoginModule\s+required\s"
)
_SECRET_HEADER: Final = re.compile(
    r"(?i)(?:^|[,|\s])(?:authorization|proxy-authorization|cookie|[\w-]*(?:key|token|secret|password))\s*:\s*\S"
)
_QUOTED: Final = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_NOT_SECRET_IN_JAAS: Final = ("username", "clientid", "unsecuredloginstringclaim_sub")


class ConfigSecrets:
    """Finds the secrets in configurations of connectors. Thread-safe."""

    def __init__(self, plugins: Plugins, providers: ConfigProviders) -> None:
        self._plugins = plugins
        self._providers = providers

    def shown(self, config: Mapping[str, str]) -> dict[str, str]:
        """A configuration with the mask instead of secrets."""
        passwords = self._password_keys(config)
        return {key: self._shown(key, text, passwords) for key, text in config.items()}

    def restored(self, given: Mapping[str, str | None], stored: Mapping[str, str]) -> dict[str, str | None]:
        """A configuration that a user has changed, with the stored values instead of the mask.

        A value is the stored one only if it is the same that is shown for this key. BadRequest if there is no such one:
        the mask would become the secret.
        """
        if not any(text is not None and MASK in text for text in given.values()):
            return dict(given)
        shown = self.shown(stored)
        restored = dict(given)
        for key, text in given.items():
            if text is None or MASK not in text or text == stored.get(key):
                continue
            if text != shown.get(key):
                raise BadRequest(
                    f"Invalid value {MASK} for configuration {key}: it stands for a value that is not shown, and there "
                    "is no such value for this key: set the value itself"
                )
            restored[key] = stored[key]
        return restored

    def concealing(self, config: Mapping[str, str]) -> dict[str, str]:
        """The secrets in a configuration, each with what is shown instead: for `conceal`."""
        found = {secret: MASK for secret in self._secrets(config) if secret != MASK}
        # Values from providers are shown as their placeholders.
        return found | self._providers.secrets(config)

    def _secrets(self, config: Mapping[str, str]) -> Iterable[str]:
        passwords = self._password_keys(config)
        for key, text in config.items():
            if self._shown(key, text, passwords) == text:
                continue
            for pattern in (_IN_URL, _IN_QUERY):
                for _, secret in pattern.findall(text):
                    yield from (secret, unquote(secret))
            if self._shown(key, text, passwords) != MASK:
                continue
            yield text
            yield from (value for name, value in _QUOTED.findall(text) if name.lower() not in _NOT_SECRET_IN_JAAS)
            if "user.info" in key:
                yield text.partition(":")[2]
            yield from (word for word in text.split() if len(word) > len(MASK) and word != text)

    def _shown(self, key: str, text: str, passwords: frozenset[str]) -> str:
        if not text or self._providers.are_placeholders(text):
            return text
        if key in passwords or _is_secret_name(key) or _CREDENTIALS.search(text):
            return MASK
        if "header" in key.lower() and _SECRET_HEADER.search(text):
            return MASK
        return _IN_QUERY.sub(rf"\1{MASK}", _IN_URL.sub(rf"\1{MASK}", text))

    def _password_keys(self, config: Mapping[str, str]) -> frozenset[str]:
        """The keys of the options that are declared as passwords."""
        sections: list[Section] = []
        with suppress(ConfigError):
            sections.append(section_of(self._plugins.connectors.find(config.get("connector.class", "")).config_class))
        sections += [part.section for part in stage_sections(config, self._plugins)]
        sections += [part.section for part in converter_sections(config, self._plugins)]
        return frozenset(
            section.prefix + name
            for section in sections
            for option in section.options.values()
            if option.is_secret
            for name in (option.key, *option.aliases)
        )


def _is_secret_name(key: str) -> bool:
    """Whether the last words of a key say that its value is secret."""
    return any(found.end() == len(key) for found in _SECRET_NAME.finditer(key))
