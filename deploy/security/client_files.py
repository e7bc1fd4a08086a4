"""The files by which clients log in as the administrator: of Kafka's own tools and ours, librdkafka's, and of curl."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from deploy.certificates.java_stores import TRUST_STORE, password_file
from deploy.certificates.private_files import write_private
from deploy.security.folder import ADMIN, SecurityFolder
from deploy.security.settings import MECHANISM

_QUOTED: Final = '"\\'
_JAAS: Final = (
    'org.apache.kafka.common.security.scram.ScramLoginModule required username="{user}" password="{password}";'
)


def write_client_files(folder: SecurityFolder, *, bootstrap: str, certificates_bootstrap: str) -> None:
    """Write all of them, with the addresses of this start. Raises OSError."""
    password = folder.password(ADMIN)
    common = {"bootstrap.servers": bootstrap, "security.protocol": "SASL_SSL"}
    jaas = _JAAS.format(user=ADMIN, password=_escaped(password, _QUOTED))
    java = {**common, "sasl.mechanism": MECHANISM, "sasl.jaas.config": jaas}
    pem = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder.authority_file)}
    store = folder.path / TRUST_STORE
    pkcs12 = {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(store),
        "ssl.truststore.password": password_file(store).read_text(encoding="ascii").strip(),
    }
    librdkafka = {
        **common,
        "sasl.mechanism": MECHANISM,
        "sasl.username": ADMIN,
        "sasl.password": password,
        "ssl.ca.location": str(folder.authority_file),
    }
    for file, settings in ((folder.client_config, java | pem), (folder.java_config, java | pkcs12)):
        _write(file, {key: _escaped(value, "\\") for key, value in settings.items()})
    _write(folder.librdkafka_config, librdkafka)
    certificate = {"bootstrap.servers": certificates_bootstrap, **folder.certificate_properties(ADMIN)}
    _write(folder.certificate_config, certificate)
    words = {"cacert": str(folder.authority_file), "user": f"{ADMIN}:{password}"}
    curl = "".join(f'{key} = "{_escaped(value, _QUOTED)}"\n' for key, value in words.items())
    write_private(folder.curl_config, curl.encode())


def _write(file: Path, settings: Mapping[str, str]) -> None:
    write_private(file, "".join(f"{key}={value}\n" for key, value in settings.items()).encode())


def _escaped(text: str, characters: str) -> str:
    """Text with a backslash before each of these characters."""
    return "".join(f"\\{one}" if one in characters else one for one in text)
