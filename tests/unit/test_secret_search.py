"""The search for secrets finds what it is there for: a search that finds nothing looks like success."""

import base64
import json

import pytest

from tests.support.secret_search import forms_of

SECRET = 'a "quoted" s3cret'


@pytest.mark.parametrize(
    "written",
    [
        f"password={SECRET};",
        json.dumps({"password": SECRET}),
        repr(["it's", SECRET]),
        SECRET.encode().hex(),
        *(
            base64.b64encode(b"x" * before + SECRET.encode() + b"y" * after).decode()
            for before in range(6)
            for after in range(3)
        ),
    ],
)
def test_each_form_of_a_secret_is_found(written: str) -> None:
    assert any(form in written.encode() for form in forms_of(SECRET))


def test_something_else_is_not_found() -> None:
    others = [SECRET.upper(), SECRET[1:], base64.b64encode(SECRET[2:].encode()).decode()]
    assert not any(form in other.encode() for form in forms_of(SECRET) for other in others)
