"""The files by which clients log in as the administrator: of Kafka's own tools and ours, librdkafka's, and of curl."""

from deploy.certificates.java_stores import TRUST_STORE, password_file
from deploy.certificates.private_files import write_private
from deploy.security.folder import ADMIN, SecurityFolder
from deploy.security.settings import MECHANISM

_JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{user}" password="{password}";'


def write_client_files(folder: SecurityFolder, *, bootstrap: str, certificates_bootstrap: str) -> None:
    """Write all of them, with the addresses of this start. Raises OSError."""
    password = folder.password(ADMIN)
    common = {"bootstrap.servers": bootstrap, "security.protocol": "SASL_SSL"}
    java = {**common, "sasl.mechanism": MECHANISM, "sasl.jaas.config": _JAAS.format(user=ADMIN, password=password)}
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
    for file, settings in (
        (folder.client_config, java | pem),
        (folder.java_config, java | pkcs12),
        (folder.librdkafka_config, librdkafka),
        (
            folder.certificate_config,
            {"bootstrap.servers": certificates_bootstrap, **folder.certificate_properties(ADMIN)},
        ),
    ):
        write_private(file, "".join(f"{key}={value}\n" for key, value in settings.items()).encode())
    curl = f'cacert = "{folder.authority_file}"\nuser = "{ADMIN}:{password}"\n'
    write_private(folder.curl_config, curl.encode())
