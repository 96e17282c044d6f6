"""Which protocol versions a request can name, and the error for any other."""

import pytest

from bespeak.protocol.errors import UNSUPPORTED_PROTOCOL_VERSION, MCPError
from bespeak.protocol.versions import LATEST_MODERN_VERSION, check_version, is_modern


def test_a_version_is_modern_from_2026_07_28_on() -> None:
    assert is_modern("2026-07-28")
    assert not is_modern("2025-11-25")


def test_a_modern_version_passes_the_check() -> None:
    check_version(LATEST_MODERN_VERSION)


@pytest.mark.parametrize("version", ["2031-01-01", "2025-11-25", "", "2026-07-28 "])
def test_any_other_version_is_refused_with_the_supported_ones(version: str) -> None:
    with pytest.raises(MCPError, match="unsupported protocol version") as caught:
        check_version(version)
    assert caught.value.code == UNSUPPORTED_PROTOCOL_VERSION
    # The older ones are agreed on by `initialize`.
    supported = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
    assert caught.value.data == {"supported": supported, "requested": version}
