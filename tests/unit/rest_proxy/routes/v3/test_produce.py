import pytest

from rest_proxy.routes.v3.produce import is_stream

PATH = b"/v3/clusters/c/topics/t/records"


@pytest.mark.parametrize(
    ("method", "path", "headers", "expected"),
    [
        ("POST", PATH, [(b"transfer-encoding", b"chunked")], True),
        ("POST", PATH + b"/", [], True),
        ("POST", PATH, [(b"content-length", b"101")], True),
        ("POST", PATH, [(b"content-length", b"100")], False),
        ("GET", PATH, [], False),
        ("POST", PATH + b":batch", [], False),
        ("POST", b"/topics/t/records", [], False),
        ("POST", b"/v3/clusters/c/topics/a/b/records", [], False),
    ],
)
def test_bodies_in_chunks_and_bodies_that_are_longer_than_others_are_streams(
    method: str, path: bytes, headers: list[tuple[bytes, bytes]], expected: bool
) -> None:
    assert is_stream({"method": method, "raw_path": path, "headers": headers}, 100) is expected
