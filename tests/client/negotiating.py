"""What the tests of negotiation share."""

from tests.client.scripted_transport import DISCOVERED

NOVEMBER = "2025-11-25"


WHY = "before that, the server did not support 2026-07-28: "


UNTYPED = {name: value for name, value in DISCOVERED.items() if name != "resultType"}
