"""The values that a shell offers for an option. What knows them is imported only when a shell asks."""

from collections.abc import Iterable


def forms(incomplete: str) -> list[str]:
    """Return the forms of `bespeak graph` that begin so."""
    from bespeak.cli.graph_command import FORMS

    return _beginning(incomplete, FORMS)


def profiles(incomplete: str) -> list[str]:
    """Return the profiles for `--as` that begin so."""
    from bespeak.conversation.profiles.known_profiles import KNOWN

    return _beginning(incomplete, KNOWN)


def eras(incomplete: str) -> list[str]:
    """Return the values for `--era` that begin so."""
    from bespeak.conversation.connection_settings import ERAS
    from bespeak.protocol.versions import SPOKEN

    return _beginning(incomplete, (*ERAS, *SPOKEN))


def record_modes(incomplete: str) -> list[str]:
    """Return the values for `--record` that begin so."""
    from bespeak.testing.cassettes.record_mode import RecordMode

    return _beginning(incomplete, map(str, RecordMode))


def _beginning(incomplete: str, values: Iterable[str]) -> list[str]:
    return [value for value in values if value.startswith(incomplete)]
