import pytest

from core_broker.client.java_properties import PropertyRefused, to_librdkafka

OAUTH = "org.apache.kafka.common.security.oauthbearer"


def test_tokens_of_a_service_are_fetched_with_its_id_and_secret() -> None:
    given = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://id.example/token",
        "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": f'{OAUTH}.OAuthBearerLoginModule required clientId="shop" clientSecret="s" scope="kafka";',
    }
    assert to_librdkafka(given.items()) == {
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://id.example/token",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "shop",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "kafka",
    }


@pytest.mark.parametrize(
    ("key", "value", "advice"),
    [
        ("ssl.truststore.location", "/t.jks", "keytool -importkeystore -srckeystore /t.jks -destkeystore /t.jks.p12"),
        ("ssl.keystore.location", "/k.jks", "set ssl.keystore.type=PKCS12"),
        ("ssl.cipher.suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "OpenSSL's names"),
        ("sasl.login.callback.handler.class", "com.example.Handler", "classes of Java cannot run here"),
        ("sasl.jaas.config", 'x.ScramLoginModule required username="i" password="h" tokenauth="true";', "tokens"),
    ],
)
def test_what_has_no_equivalent_is_refused_with_its_key_and_what_to_do(key: str, value: str, advice: str) -> None:
    with pytest.raises(PropertyRefused) as raised:
        to_librdkafka([(key, value)])
    assert raised.value.key == key
    assert advice in raised.value.reason
