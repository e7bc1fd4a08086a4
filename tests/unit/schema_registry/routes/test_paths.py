"""Paths before routing: contexts become part of subjects, everything stays as encoded as it was."""

import pytest

from schema_registry.routes.paths import context_prefix, in_context


@pytest.mark.parametrize(
    "path,query,expected",
    [
        ("/contexts/.a/subjects/s/versions/1", "", ("/subjects/:.a:s/versions/1", "")),
        ("/contexts/a/subjects/s", "deleted=true", ("/subjects/:.a:s", "deleted=true")),
        ("/contexts/:.a:/subjects/s", "", ("/subjects/:.a:s", "")),
        ("/contexts/./subjects/s", "", ("/subjects/s", "")),
        ("/contexts/.a/subjects/a%2Fb", "", ("/subjects/:.a:a%2Fb", "")),
        ("/contexts/.a/subjects/:.b:s", "", ("/subjects/:.b:s", "")),
        ("/contexts/.a/subjects/%3A.b%3As", "", ("/subjects/%3A.b%3As", "")),
        ("/contexts/.a/subjects", "", ("/subjects", "subjectPrefix=%3A.a%3A")),
        ("/contexts/.a/subjects", "subjectPrefix=x&limit=2", ("/subjects", "limit=2&subjectPrefix=%3A.a%3Ax")),
        ("/contexts/.a/schemas", "", ("/schemas", "subjectPrefix=%3A.a%3A")),
        ("/contexts/.a/schemas/ids/7", "", ("/schemas/ids/7", "subject=%3A.a%3A")),
        ("/contexts/.a/schemas/ids/7", "subject=s", ("/schemas/ids/7", "subject=%3A.a%3As")),
        ("/contexts/.a/config", "", ("/config/:.a:", "")),
        ("/contexts/.a/config/s", "", ("/config/:.a:s", "")),
        ("/contexts/.a/mode", "force=true", ("/mode/:.a:", "force=true")),
        ("/contexts/./mode", "", ("/mode", "")),
        ("/contexts/.a/compatibility/subjects/s/versions/1", "", ("/compatibility/subjects/:.a:s/versions/1", "")),
        ("/contexts/.a/dek-registry/v1/keks", "", ("/dek-registry/v1/keks", "subjectPrefix=%3A.a%3A")),
        ("/contexts/.a/dek-registry/v1/keks/k/deks/s", "", ("/dek-registry/v1/keks/k/deks/:.a:s", "")),
        ("/contexts/.a", "", ("/contexts/.a", "")),
    ],
)  # fmt: skip
def test_a_context_in_the_path_goes_into_the_subject(path: str, query: str, expected: tuple[str, str]) -> None:
    assert in_context(path, query) == expected


def test_associations_learn_their_context_when_they_change() -> None:
    assert in_context("/contexts/.a/associations", "", "POST") == ("/associations", "context=%3A.a%3A")
    assert in_context("/contexts/.a/associations", "x=1", "GET") == ("/associations", "x=1")


@pytest.mark.parametrize("name", ["", ":", "a:b"])
def test_a_bad_context_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="Context name"):
        context_prefix(name)
