"""TLS for connections of our own, by librdkafka's settings; and what failures of TLS mean, in words."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from core_broker.client.errors import Rejected, Untrusted
from core_broker.client.key_stores import UnreadableStore, read_key_pair

_EXPIRED: Final = 10
_WRONG_HOST: Final = (62, 64)
"""OpenSSL's codes for a certificate that has another host name, or another address."""
_ALERT_RECORD: Final = 0x1503
"""How an alert of TLS begins; read as the length of a response, it would be one of 350 MB."""


def client_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """A context with the certificates and checks of the properties; raises Rejected."""
    context = _trusting(properties)
    if properties.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        context.check_hostname = False
    if properties.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if suites := properties.get("ssl.cipher.suites"):
        try:
            context.set_ciphers(suites.replace(",", ":"))
        except ssl.SSLError:
            raise Rejected(f"ssl.cipher.suites={suites}: no such cipher suites") from None
    _show_certificate(context, properties)
    return context


def explain_failure(error: OSError, address: str) -> Untrusted | None:
    """What a failure of TLS means, and what to check; None if it is another failure."""
    match error:
        case ssl.SSLCertVerificationError() if error.verify_code in _WRONG_HOST:
            text = (
                "the certificate is not for this host name: connect by a name that it has, or give the broker another"
            )
        case ssl.SSLCertVerificationError() if error.verify_code == _EXPIRED:
            text = "the certificate has expired: the broker needs a new one"
        case ssl.SSLCertVerificationError():
            text = (
                f"the certificate is not trusted ({error.verify_message}): is the CA of the broker in the truststore?"
            )
        case ssl.SSLError() if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
            text = "this listener does not speak TLS: use its TLS port, or another security.protocol"
        case ssl.SSLError() if "CERTIFICATE_REQUIRED" in (error.reason or ""):
            text = "the broker asks for a certificate of the client: set ssl.keystore.location"
        case ssl.SSLError() if "ALERT" in (error.reason or ""):
            reason = (error.reason or "").rpartition("ALERT_")[2].replace("_", " ").lower()
            text = f"the broker ended TLS ({reason}): does it trust the certificate of this client?"
        case ssl.SSLError():
            text = f"TLS failed: {error.reason or error}"
        case _:
            return None
    return Untrusted(f"{address}: {text}")


def speaks_tls(length: int, address: str) -> Untrusted | None:
    """The failure if the length of a response is in fact TLS: the connection is not encrypted, the listener is."""
    if length >> 16 != _ALERT_RECORD:
        return None
    return Untrusted(f"{address}: this listener speaks TLS: set security.protocol to SSL or SASL_SSL")


def _trusting(properties: Mapping[str, str]) -> ssl.SSLContext:
    location = properties.get("ssl.ca.location")
    if location == "probe":
        location = None
    try:
        if location and Path(location).is_dir():
            return ssl.create_default_context(capath=location)
        return ssl.create_default_context(cafile=location, cadata=properties.get("ssl.ca.pem") or None)
    except (OSError, ValueError) as error:
        name = f"ssl.ca.location={location}" if location else "ssl.ca.pem"
        raise Rejected(f"{name}: not readable as certificates in PEM ({error})") from None


def _show_certificate(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    password = properties.get("ssl.key.password") or ""
    if location := properties.get("ssl.keystore.location"):
        try:
            pair = read_key_pair(location, properties.get("ssl.keystore.password", ""))
        except UnreadableStore as error:
            raise Rejected(f"ssl.keystore.location: {error}") from None
        _load_texts(context, pair.certificates, pair.key, "")
    elif "ssl.certificate.pem" in properties:
        _load_texts(context, properties["ssl.certificate.pem"], properties.get("ssl.key.pem", ""), password)
    elif location := properties.get("ssl.certificate.location"):
        _load_files(context, Path(location), Path(properties.get("ssl.key.location", location)), password)


def _load_texts(context: ssl.SSLContext, certificates: str, key: str, password: str) -> None:
    """Load texts by way of files that only this user can read: OpenSSL's binding in Python takes nothing else."""
    with TemporaryDirectory(prefix="caudal-") as folder:
        certificate_file, key_file = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        certificate_file.write_text(certificates)
        key_file.write_text(key)
        _load_files(context, certificate_file, key_file, password)


def _load_files(context: ssl.SSLContext, certificates: Path, key: Path, password: str) -> None:
    try:
        # Without a password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(certificates, key, password=lambda: password)
    except (OSError, ValueError) as error:
        raise Rejected(
            f"the certificate and key of this client cannot be read ({error}): PEM, and ssl.key.password if it has one"
        ) from None
