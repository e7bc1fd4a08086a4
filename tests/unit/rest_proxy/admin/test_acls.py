from collections.abc import Sequence

import pytest

from core_broker.client.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from rest_proxy.admin import acls
from rest_proxy.errors import ProxyError
from rest_proxy.models.v3.acls import CreateAclBody
from rest_proxy.models.v3.resources import Links

LINKS = Links(base="http://proxy", cluster_id="c-1")
RULE = Acl(
    resource_type=ResourceType.TOPIC,
    resource_name="a b&c",
    pattern_type=PatternType.LITERAL,
    principal="User:alice",
    host="*",
    operation=Operation.READ,
    permission=Permission.ALLOW,
)
FIELDS = {field: str(getattr(RULE, field)) for field in Acl.__slots__}
FITTING: dict[str, Sequence[str]] = {
    "resource_type": ["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"],
    "pattern_type": ["LITERAL", "PREFIXED"],
    "operation": sorted({*Operation} - {"ANY", "UNKNOWN"}),
    "permission": ["ALLOW", "DENY"],
}
WORDS = {"resource_type": ResourceType, "pattern_type": PatternType, "operation": Operation, "permission": Permission}
UNSAID = {
    "resource_type": AclFilter(resource_type=ResourceType.UNKNOWN),
    "pattern_type": AclFilter(pattern_type=PatternType.UNKNOWN),
    "operation": AclFilter(operation=Operation.UNKNOWN),
    "permission": AclFilter(permission=Permission.UNKNOWN),
}


def test_body_becomes_a_rule() -> None:
    assert acls.rule(CreateAclBody.model_validate(FIELDS)) == RULE


@pytest.mark.parametrize(("field", "word"), [(field, word) for field, words in FITTING.items() for word in words])
def test_rules_take_the_words_that_fit(field: str, word: str) -> None:
    body = CreateAclBody.model_validate({**FIELDS, field: word.lower()})
    assert getattr(acls.rule(body), field) == word


@pytest.mark.parametrize(
    ("field", "word"),
    [(field, word) for field, words in WORDS.items() for word in words if word not in FITTING[field]],
)
def test_rules_take_no_words_of_filters(field: str, word: str) -> None:
    with pytest.raises(ProxyError, match=f"{field} cannot be {word}") as refused:
        acls.rule(CreateAclBody.model_validate({**FIELDS, field: word}))
    assert refused.value.code == 400


@pytest.mark.parametrize("field", WORDS)
def test_a_search_for_unknown_is_refused(field: str) -> None:
    acls.check_filter(AclFilter())
    with pytest.raises(ProxyError, match=f"{field} cannot be UNKNOWN") as refused:
        acls.check_filter(UNSAID[field])
    assert refused.value.code == 400


@pytest.mark.parametrize("field", WORDS)
def test_what_is_removed_must_be_said(field: str) -> None:
    acls.check_filter(AclFilter(), is_deletion=True)
    with pytest.raises(ProxyError, match=f"{field} cannot be unspecified or UNKNOWN") as refused:
        acls.check_filter(UNSAID[field], is_deletion=True)
    assert refused.value.code == 400


def test_address_of_a_rule_has_all_its_fields() -> None:
    assert acls.address(RULE, LINKS) == (
        "http://proxy/v3/clusters/c-1/acls?resource_type=TOPIC&resource_name=a+b%26c&pattern_type=LITERAL"
        "&principal=User%3Aalice&host=*&operation=READ&permission=ALLOW"
    )


def test_address_of_a_search_has_what_was_not_said() -> None:
    assert acls.address(AclFilter(), LINKS) == (
        "http://proxy/v3/clusters/c-1/acls?resource_type=ANY&resource_name=&pattern_type=ANY"
        "&principal=&host=&operation=ANY&permission=ANY"
    )


def test_an_acl_has_its_cluster_and_url() -> None:
    (result,) = acls.acl_data([RULE], LINKS)
    assert (result.kind, result.cluster_id, result.metadata.self) == ("KafkaAcl", "c-1", acls.address(RULE, LINKS))
    assert {field: str(getattr(result, field)) for field in FIELDS} == FIELDS
