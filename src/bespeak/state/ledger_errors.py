"""What the ledger refuses, in the words that the client reads."""

from bespeak.protocol.errors import INVALID_PARAMS, MCPError
from bespeak.resolve.errors import ToolError


class LedgerError(ToolError):
    """The ledger refuses a claim."""


class SettledOtherwise(LedgerError):
    def __init__(self) -> None:
        super().__init__(
            "this call was already settled with other answers; check whether it took effect before you start a new one"
        )


class ResultGone(LedgerError):
    def __init__(self) -> None:
        super().__init__(
            "this call was already completed, and its result is no longer kept; check whether it took effect before you repeat it"
        )


class OutcomeUnknown(LedgerError):
    def __init__(self) -> None:
        super().__init__(
            "this call was started, and the server running it died or could not store the outcome: whether it took effect is "
            "unknown. It is not run again; check before starting a new call"
        )


class StillRunning(LedgerError):
    def __init__(self) -> None:
        super().__init__("this call is still running; send the same request again later to get its result")


class NoTriesLeft(LedgerError):
    def __init__(self, question: str, most: int) -> None:
        times = "once" if most == 1 else f"{most} times"
        super().__init__(
            f"{question!r} was answered {times} in this call, and takes no more answers; check whether the call took effect "
            "before you start a new one"
        )


class LedgerFull(LedgerError):
    def __init__(self) -> None:
        super().__init__("the server cannot take more calls that ask questions now; try again later")


class ShareUsedUp(LedgerError):
    def __init__(self) -> None:
        super().__init__(
            "the server is busy, and too many recent calls that asked questions came from you or your address; try again later"
        )


class LedgerUnavailable(LedgerError):
    def __init__(self) -> None:
        super().__init__(
            "the server cannot use the store that remembers which calls were approved, so this request ran nothing, and whether "
            "an earlier one took effect cannot be read now. Send the same request again later"
        )


class CallForgotten(MCPError):
    """The store does not know any more whether a call was run. Only who has a valid state of the call is told."""

    def __init__(self, call: str) -> None:
        call_id = call.partition("/")[0]
        super().__init__(
            INVALID_PARAMS,
            f"the server no longer knows whether this call (id {call_id}) took effect: its record of the call was lost, or its "
            "time has run out. The call was not run now. Check whether it took effect before you start a new call",
        )
