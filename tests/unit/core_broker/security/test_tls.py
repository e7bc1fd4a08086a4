"""TLS contexts from settings, and who a certificate is."""

import ssl

import pytest

from core_broker.protocol.principals import ANONYMOUS
from core_broker.security.principal_mapping import NoRuleApplies, PrincipalMapping
from core_broker.security.stores import StoreError
from core_broker.security.tls import (
    certificate_principal,
    client_context,
    openssl_name,
    principal_mapping,
    server_context,
    server_store,
)
from core_broker.settings.tls import TlsSettings
from tests.support.certificates import Authority

AUTHORITY = Authority()
BROKER = AUTHORITY.issue()
TLS13 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
OLDER = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"


def settings(**values: object) -> TlsSettings:
    complete = TlsSettings(
        ssl_keystore_key=BROKER.key_pem(),
        ssl_keystore_certificate_chain=BROKER.chain_pem,
        ssl_truststore_certificates=AUTHORITY.pem,
    )
    return complete.replace(**values)


def server(**values: object) -> ssl.SSLContext:
    given = settings(**values)
    return server_context(given, server_store(given))


def connected(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "127.0.0.1") -> ssl.SSLObject:
    """The server's end after a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
    return ends[1]


@pytest.mark.parametrize(
    "wanted,mode", [("none", ssl.CERT_NONE), ("requested", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED)]
)
def test_client_authentication(wanted: str, mode: ssl.VerifyMode) -> None:
    assert server(ssl_client_auth=wanted).verify_mode == mode


def test_both_ends_with_certificates() -> None:
    end = connected(server(ssl_client_auth="required"), client_context(settings()))
    assert end.version() == "TLSv1.3"
    der = end.getpeercert(binary_form=True)
    assert str(certificate_principal(der, PrincipalMapping("DEFAULT"))) == "User:CN=broker,O=Acme"
    with pytest.raises(NoRuleApplies):
        certificate_principal(der, PrincipalMapping("RULE:x/y/"))


def test_a_client_without_a_certificate_is_anonymous() -> None:
    nothing = settings(ssl_keystore_key=None, ssl_keystore_certificate_chain=None)
    end = connected(server(), client_context(nothing))
    assert certificate_principal(end.getpeercert(binary_form=True), PrincipalMapping("DEFAULT")) is ANONYMOUS


def test_a_client_compares_the_host_name_unless_it_is_told_not_to() -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        connected(server(), client_context(settings()), "broker.example.com")
    lenient = client_context(settings(ssl_endpoint_identification_algorithm=""))
    connected(server(), lenient, "broker.example.com")


def test_public_authorities_are_never_trusted() -> None:
    nothing = settings(ssl_truststore_certificates=None)
    with pytest.raises(StoreError, match=r"ssl\.truststore\.location: must be set"):
        client_context(nothing)
    with pytest.raises(StoreError, match=r"ssl\.truststore\.location: must be set"):
        server(ssl_truststore_certificates=None, ssl_client_auth="requested")
    assert server().get_ca_certs() == []


def test_an_authority_between_is_trusted_without_the_one_above_it() -> None:
    between = Authority("Between", AUTHORITY)
    identity = between.issue()
    shown = server(ssl_keystore_key=identity.key_pem(), ssl_keystore_certificate_chain=identity.chain_pem)
    connected(shown, client_context(settings(ssl_truststore_certificates=between.pem)))


def test_a_server_needs_a_key_store() -> None:
    with pytest.raises(StoreError, match="a server needs a certificate"):
        server_store(TlsSettings())


@pytest.mark.parametrize(
    "versions,suites,lowest,highest",
    [
        (("TLSv1.2", "TLSv1.3"), (), ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
        (("TLSv1.3",), (), ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3),
        (("TLSv1.2",), (), ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2),
        (("TLSv1.2", "TLSv1.3"), (OLDER,), ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2),
        (("TLSv1.2", "TLSv1.3"), TLS13, ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3),
        (("TLSv1.2", "TLSv1.3"), (OLDER, *TLS13), ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
    ],
)
def test_versions_and_suites(
    versions: tuple[str, ...], suites: tuple[str, ...], lowest: ssl.TLSVersion, highest: ssl.TLSVersion
) -> None:
    context = server(ssl_enabled_protocols=versions, ssl_cipher_suites=suites)
    assert (context.minimum_version, context.maximum_version) == (lowest, highest)
    if OLDER in suites:
        older = [found["name"] for found in context.get_ciphers() if found["name"] not in TLS13]
        assert older == ["ECDHE-RSA-AES128-GCM-SHA256"]


@pytest.mark.parametrize(
    "suites,versions,reason",
    [
        (TLS13[:2], ("TLSv1.3",), "TLS_AES_128_GCM_SHA256 is missing"),
        (("TLS_NONSENSE",), ("TLSv1.2",), "OpenSSL has none of TLS_NONSENSE"),
        ((OLDER,), ("TLSv1.3",), "no suite of the versions"),
    ],
)
def test_suites_that_cannot_be_used_are_refused(
    suites: tuple[str, ...], versions: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(StoreError, match=reason):
        server(ssl_cipher_suites=suites, ssl_enabled_protocols=versions)


@pytest.mark.parametrize(
    "java,openssl",
    [
        (OLDER, "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_names_of_cipher_suites(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(openssl)


def test_rules_that_cannot_be_read_name_their_setting() -> None:
    with pytest.raises(StoreError, match=r"ssl\.principal\.mapping\.rules: cannot read the rule"):
        principal_mapping(settings(ssl_principal_mapping_rules="RULE:x"))
