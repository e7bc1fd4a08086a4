r"""Logins as sasl.jaas.config has them: `...PlainLoginModule required username="a" password="b" user_a="b";`.

Only the options of three modules are read. No class is ever loaded: in Java, modules named in such a text have
read files and run foreign code (CVE-2023-25194).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from typing_extensions import override

_KAFKA: Final = "org.apache.kafka.common.security."
_MODULES: Final[Mapping[str, str]] = {
    f"{_KAFKA}plain.PlainLoginModule": "PLAIN",
    f"{_KAFKA}scram.ScramLoginModule": "SCRAM",
    f"{_KAFKA}oauthbearer.OAuthBearerLoginModule": "OAUTHBEARER",
}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_USER: Final = "user_"
_EXTENSION: Final = "extension_"
_TOKEN: Final = re.compile(
    r"""\s+|//[^\r\n]*|/\*.*?\*/"""
    r"""|(?P<quoted>"(?:[^"\\\r\n]|\\[^\r\n])*"|'(?:[^'\\\r\n]|\\[^\r\n])*')|(?P<word>[A-Za-z0-9_.$-]+)|(?P<sign>[=;])""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[0-7]{1,2}|.)")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasLogin(msgspec.Struct, frozen=True):
    """One login module with its options."""

    mechanism: str
    """PLAIN, SCRAM or OAUTHBEARER."""
    options: Mapping[str, str]

    @property
    def users(self) -> dict[str, str]:
        """Passwords by user name: the options that begin with `user_`, of PLAIN."""
        return {key[len(_USER) :]: value for key, value in self.options.items() if key.startswith(_USER)}

    @property
    def extensions(self) -> dict[str, str]:
        """What is sent with a token: the options that begin with `extension_`, of OAUTHBEARER."""
        return {key[len(_EXTENSION) :]: value for key, value in self.options.items() if key.startswith(_EXTENSION)}

    @property
    def username(self) -> str:
        """As which user this node logs in at other nodes; empty if it does not."""
        return self.options.get("username", "")

    @property
    def password(self) -> str:
        """The password of this user."""
        return self.options.get("password", "")

    def accepts(self, mechanism: str) -> bool:
        """Whether it is a login of a mechanism such as SCRAM-SHA-512."""
        return mechanism == self.mechanism or mechanism.startswith(f"{self.mechanism}-")

    @override
    def __repr__(self) -> str:
        return f"JaasLogin({self.mechanism})"


def parse_jaas(text: str) -> JaasLogin:
    """Read one login. Raises ValueError, without any part of the text that may be secret."""
    tokens = list(_tokens(text))
    if len(tokens) < 3 or tokens[-1] != ("sign", ";"):
        raise ValueError("must be a login module, `required`, options as name=value, and a semicolon")
    module, flag, *options = (token for token in tokens[:-1])
    mechanism = _MODULES.get(module[1])
    if mechanism is None:
        raise ValueError(f"the login module must be one of {', '.join(_MODULES)}; no other class is supported")
    if flag[1].lower() not in _FLAGS:
        raise ValueError(f"{_short(module[1])} must be followed by one of {', '.join(_FLAGS)}")
    return JaasLogin(mechanism, _options(options, mechanism))


def _options(tokens: list[tuple[str, str]], mechanism: str) -> dict[str, str]:
    if ("sign", ";") in tokens:
        raise ValueError("must contain one login module only")
    if len(tokens) % 3:
        raise ValueError("must have options written as name=value; quote values, and escape quotes in them with \\")
    options: dict[str, str] = {}
    for (kind, name), equals, (value_kind, value) in zip(tokens[::3], tokens[1::3], tokens[2::3], strict=True):
        if kind == "sign" or value_kind == "sign" or equals != ("sign", "="):
            raise ValueError("must have options written as name=value; quote values, and escape quotes in them with \\")
        if not _is_known(name, mechanism):
            raise ValueError(f"{mechanism} has no option {name[:100]}; {_known(mechanism)}")
        if name in options:
            raise ValueError("must have each option once")
        if not value and name != _USER:
            raise ValueError(f"option {name[:100]} must not be empty")
        options[name] = value
    return options


def _is_known(name: str, mechanism: str) -> bool:
    match mechanism:
        case "PLAIN":
            return name in ("username", "password") or (name.startswith(_USER) and len(name) > len(_USER))
        case "SCRAM":
            return name in ("username", "password", "tokenauth")
        case _:
            return name.startswith(_EXTENSION) and name[len(_EXTENSION) :].isalpha() and name != f"{_EXTENSION}auth"


def _known(mechanism: str) -> str:
    match mechanism:
        case "PLAIN":
            return "it has username, password and user_<name>"
        case "SCRAM":
            return "it has username, password and tokenauth"
        case _:
            return "it has extension_<name>; the token comes from sasl.oauthbearer.token.endpoint.url"


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"cannot be read from character {position + 1} on; is a quote or a semicolon missing?")
        position = match.end()
        if match.lastgroup == "quoted":
            yield "quoted", _ESCAPE.sub(_unescape, match["quoted"][1:-1])
        elif match.lastgroup is not None:
            yield match.lastgroup, match[0]


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPES.get(code, code)


def _short(module: str) -> str:
    return module.rpartition(".")[2]
