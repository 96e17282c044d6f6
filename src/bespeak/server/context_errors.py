"""What an author reads who uses a context for what it cannot do: the reason, and what to write instead."""


class OutsideRequest(RuntimeError):
    """A context without a client's request was used for something that needs one."""


class NoClient(RuntimeError):
    """A call without a client asked a question."""


class CannotPush(RuntimeError):
    """A body tried to ask the client during the call, which the client's protocol revision does not support."""


class Unaskable:
    """Why a client cannot be asked during a call, in the words of the errors."""

    def __init__(self, consumer: str, version: str | None, *, completes: bool) -> None:
        self._consumer = consumer
        self._version = version
        self._completes = completes

    def question(self, what: str, wanted: str, question: str) -> CannotPush:
        """Return the error for a question asked during a call, with the resolver to write instead."""
        asked = f"{question.partition('(')[0]}{f'[{wanted}]' if what == 'elicit' else ''}"
        return self._error(
            what,
            "every revision",
            f"    async def ask() -> {asked}:\n"
            f"        return {question}\n\n"
            f"    async def {self._consumer}(..., answer: Annotated[{wanted}, Resolve(ask)]): ...",
        )

    def url(self, message: str) -> CannotPush:
        """Return the error for a URL question asked during a call, with the resolver to write instead."""
        return self._error(
            "elicit_url",
            "2025-11-25 and later",
            f"    async def connected() -> Account | ElicitUrl:\n"
            f"        return find_account() or ElicitUrl({message!r}, url)\n\n"
            f"    async def {self._consumer}(..., account: Annotated[Account, Resolve(connected)]): ...",
        )

    def resource(self, uri: str) -> CannotPush:
        """Return the error for a resource that was read during a call, and asks."""
        return CannotPush(
            f"{self._consumer!r} read the resource {uri!r}, which asks the client, but only a request of the client itself "
            "can ask. Ask here instead, with the resolver that the resource uses: Annotated[..., Resolve(fn)]"
        )

    def _error(self, what: str, where: str, resolver: str) -> CannotPush:
        if self._completes:
            return CannotPush(f"The completion of {self._consumer} called ctx.{what}(), but a completion cannot ask")
        called = f"{self._consumer!r} called ctx.{what}()"
        reason = f"a client of {self._version} cannot be asked during a call"
        if self._version is None:
            reason = "the tool was called without a client. In a test, connect one: `async with Client(mcp, ...)`"
        return CannotPush(f"{called}, but {reason}. Ask in a resolver, which works at {where}:\n\n{resolver}")
