"""Checks the URLs in a server's questions before they reach a callback, which may open them."""

from collections.abc import Collection
from typing import Any

from bespeak.protocol.question_urls import is_scheme, scheme_of, url_problem


def read_schemes(schemes: Collection[Any]) -> tuple[str, ...]:
    """Return the allowed schemes in lower case. Raises `ValueError`."""
    names: list[Any] = [""] if isinstance(schemes, str) else list(schemes)
    if not all(isinstance(name, str) and is_scheme(name) for name in names):
        raise ValueError(
            f'elicitation_url_schemes must be a collection of URL schemes, such as ("https",), not {schemes!r}'
        )
    return tuple(name.lower() for name in names)


def check_url(key: str, url: str, schemes: Collection[str]) -> str | None:
    """Return why the URL of the question `key` must not be opened; `None` if it may be. The text does not repeat the URL."""
    asks = f"the question {key!r:.200} sends people to a URL"
    problem = url_problem(url)
    if problem is not None:
        return f"{asks} that is not valid: it {problem}"
    scheme = scheme_of(url)
    if scheme in schemes:
        return None
    return f"{asks} with the scheme {scheme[:40]!r}; this client allows {', '.join(schemes)} (elicitation_url_schemes)"
