"""Media types in `Accept` and `Content-Type`: what a client accepts, and whether a body is JSON."""

RESPONSE_TYPES = ("application/json", "text/event-stream")


def accepts_responses(accept: bytes | None, *, streams: bool) -> bool:
    """Return whether a client accepts JSON and, if `streams` is set, event streams.

    Without the header, it accepts anything.
    """
    if accept is None:
        return True
    ranges = dict(_range(part) for part in accept.decode("latin-1").lower().split(","))
    wanted = RESPONSE_TYPES if streams else RESPONSE_TYPES[:1]
    return all(_quality(ranges, media) > 0 for media in wanted)


def accepts_streams(accept: bytes | None) -> bool:
    """Return whether a client accepts event streams."""
    if accept is None:
        return True
    ranges = dict(_range(part) for part in accept.decode("latin-1").lower().split(","))
    return _quality(ranges, "text/event-stream") > 0


def _range(part: str) -> tuple[str, float]:
    media, *parameters = (piece.strip() for piece in part.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return media, float(value)
            except ValueError:
                return media, 0.0
    return media, 1.0


def _quality(ranges: dict[str, float], media: str) -> float:
    """Return the quality of a media type. The most specific range decides."""
    for pattern in (media, f"{media.partition('/')[0]}/*", "*/*"):
        if pattern in ranges:
            return ranges[pattern]
    return 0.0


def is_json(content_type: bytes | None) -> bool:
    """Return whether a `Content-Type` is JSON in UTF-8."""
    if content_type is None:
        return False
    media, *parameters = (piece.strip() for piece in content_type.decode("latin-1").lower().split(";"))
    charsets = [parameter.partition("=")[2].strip('"') for parameter in parameters if parameter.startswith("charset=")]
    return media == "application/json" and all(charset in ("utf-8", "utf8") for charset in charsets)
