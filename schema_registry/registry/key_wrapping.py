"""Wrap and unwrap keys with the key management service of a KEK."""

import base64
import binascii
from collections.abc import Callable, Mapping

from schema_registry.models_deks import DekAlgorithm
from schema_registry.registry.dek_rules import access_denied, generation_failed, invalid
from schema_registry.registry.kms import KmsAccessDenied, KmsDriver, KmsError, Wrapper, new_key
from schema_registry.store.deks import StoredDek, StoredKek

_TEST_SUBJECT = "__TEST"


class KeyWrapping:
    """Wraps and unwraps keys with the services that this registry can use."""

    def __init__(self, drivers: Mapping[str, KmsDriver]) -> None:
        self._drivers = dict(drivers)

    def wrap(self, kek: StoredKek, subject: str, key: bytes) -> str:
        """Wrap a key for storage; raises 50070 or 40370 if the service fails."""
        failure = f"Could not generate encrypted dek for {subject}"
        return base64.b64encode(self._with_kms(kek, failure, lambda wrapper: wrapper.wrap(key))).decode()

    def unwrap(self, kek: StoredKek, dek: StoredDek) -> bytes:
        """The plain form of a stored key; raises 50070 or 40370 if the service fails."""
        failure = f"Could not generate raw dek for {dek.id.subject}"
        try:
            wrapped = base64.b64decode(dek.encrypted_key_material, validate=True)
        except (binascii.Error, ValueError):
            raise generation_failed(f"{failure}: the stored key material is not Base64") from None
        return self._with_kms(kek, failure, lambda wrapper: wrapper.unwrap(wrapped))

    def test(self, kek: StoredKek) -> None:
        """Wrap a throw-away key; raises if that fails, or if the KEK is not shared."""
        if not kek.is_shared:
            raise invalid("shared")
        self.wrap(kek, _TEST_SUBJECT, new_key(DekAlgorithm.AES256_GCM))

    def _with_kms(self, kek: StoredKek, failure: str, use: Callable[[Wrapper], bytes]) -> bytes:
        driver = self._drivers.get(kek.kms_type)
        if driver is None:
            raise generation_failed(
                f"{failure}: this registry cannot use keys of type '{kek.kms_type}', only of {sorted(self._drivers)}"
            )
        try:
            return use(driver(kek.kms_key_id, kek.kms_props))
        except KmsAccessDenied as error:
            raise access_denied(f"{failure}: {error}") from error
        except KmsError as error:
            raise generation_failed(f"{failure}: {error}") from error
