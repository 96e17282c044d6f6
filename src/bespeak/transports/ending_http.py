"""An end to streams that only stand there when uvicorn stops; it would wait for them."""

from collections.abc import Mapping

from uvicorn.protocols.http.h11_impl import H11Protocol

from bespeak.transports.http_legacy import END_OF_STREAM


def end_stream(scope: Mapping[str, object] | None) -> None:
    """End the stream that a request has opened, if it has."""
    end = scope.get(END_OF_STREAM) if scope else None
    if callable(end):
        end()


class EndingH11(H11Protocol):
    """uvicorn's parser without httptools, ending its stream when it is told to stop."""

    def shutdown(self) -> None:
        super().shutdown()
        end_stream(self.scope)
