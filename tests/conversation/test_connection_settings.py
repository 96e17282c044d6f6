"""Eras by name: a revision, or the newest of an era."""

import pytest

from bespeak.conversation.connection_settings import mode_of, revision


@pytest.mark.parametrize(
    ("era", "found", "mode"),
    [("modern", "2026-07-28", "2026-07-28"), ("legacy", "2025-11-25", "legacy"), ("2025-06-18",) * 3],
)
def test_an_era_is_a_revision_or_the_newest_of_its_kind(era: str, found: str, mode: str) -> None:
    assert (revision(era), mode_of(era)) == (found, mode)


def test_another_era_is_an_error_that_lists_them() -> None:
    assert mode_of("auto") == "auto"
    with pytest.raises(ValueError, match=r"an era is modern, legacy or one of 2026-07-28, 2025-11-25, .*, not 'auto'"):
        revision("auto")
