"""The refund desk example checks itself; this runs it."""

import pytest
from examples.refund_desk import client


async def test_the_refund_desk_is_as_it_should_be(capsys: pytest.CaptureFixture[str]) -> None:
    await client.main()
    told = capsys.readouterr().out
    assert "refund_scope asks: ORD-7002 has 2 lines" in told
    assert told.endswith("Everything is as it should be.\n")
