from core_broker.handlers.access_page import PATH, page


def test_the_page_of_rights_shows_the_table() -> None:
    assert PATH.read_text(encoding="utf-8") == page(), "ACCESS.md is out of date: run `make docs`"


def test_each_api_has_a_line_with_its_rights() -> None:
    lines = page().splitlines()
    assert "| 26 | EndTxn | WRITE on TRANSACTIONAL_ID |  |  |" in lines
    assert "| 52 | Vote | CLUSTER_ACTION on CLUSTER |  |  |" in lines
    assert any(
        "IDEMPOTENT_WRITE on CLUSTER or WRITE on any TOPIC (without `transactional_id`)" in line for line in lines
    )
