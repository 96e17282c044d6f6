"""Tries (design section 5): of many answers that a model may refuse, no more than `attempts` reach its validator in one call."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator, model_validator

from bespeak import Client, Elicit, MCPError, MCPServer, RequestStateSecurity, Resolve
from bespeak.state.stores.memory import MemoryStore
from bespeak.state.stores.store import Entry
from tests.conftest import Connect
from tests.rules.raw_calls import accept, asked, failed, message, nobody, opened, said, send
from tests.state.stores.redis_servers import own_server

KEYS = ["k" * 32]
CODE = "7391"
OVER = "'code' was answered 3 times in this call, and takes no more answers; check whether the call took effect before you start"


class Bank:
    """Servers of one name, which share what they have seen: codes that reached the validator, and payments."""

    def __init__(self, store: Any, attempts: int = 3) -> None:
        self.tried: list[str] = []
        self.paid = 0
        self._store = store
        self._attempts = attempts

    def server(self) -> MCPServer[Any]:
        security = RequestStateSecurity(keys=KEYS)
        mcp = MCPServer[Any]("bank", store=self._store, request_state_security=security)

        class Code(BaseModel):
            code: str = Field(min_length=4, max_length=4)

            @field_validator("code")
            @classmethod
            def right(cls, value: str) -> str:
                self.tried.append(value)
                if value != CODE:
                    raise ValueError("is not the code that was sent")
                return value

        async def ask_code() -> Elicit[Code]:
            return Elicit("The code?", Code, attempts=self._attempts)

        @mcp.tool()
        async def pay(code: Annotated[Code, Resolve(ask_code, key="code")]) -> str:
            self.paid += 1
            return "paid"

        return mcp


class Begun:
    """A call that waits for the code, and its state."""

    def __init__(self, result: dict[str, Any]) -> None:
        (self.key,) = result["inputRequests"]
        self.state: str = result["requestState"]

    async def guess(self, client: Client, code: str) -> dict[str, Any]:
        return await send(client, "pay", {self.key: accept(code=code)}, self.state)


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


def connected(bank: Bank) -> Client:
    return Client(bank.server(), elicitation_callback=nobody)


# Guesses from one state


@pytest.fixture(params=["memory", "sqlite", pytest.param("redis", marks=pytest.mark.long)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Any]:
    if request.param == "memory":
        yield MemoryStore()
    elif request.param == "sqlite":
        yield f"sqlite:{tmp_path / 'bank.db'}?durable=no"
    else:
        with own_server(tmp_path) as server:
            yield server.url


@asynccontextmanager
async def workers(bank: Bank, number: int) -> AsyncGenerator[list[Client]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connected(bank)) for _ in range(number)]


@pytest.mark.timing
@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.long), 4])
async def test_of_a_thousand_different_guesses_at_once_at_most_attempts_reach_the_validator(
    store: Any, number: int
) -> None:
    bank, guesses = Bank(store), 1000
    # Each operation of Redis that is under way has a connection of its own.
    room = asyncio.Semaphore(100 if "redis" in str(store) else guesses)

    async def guess(client: Client, begun: Begun, code: str) -> dict[str, Any]:
        async with room:
            return await begun.guess(client, code)

    async with workers(bank, number) as clients:
        begun = Begun(await send(clients[0], "pay"))
        replies = await asyncio.gather(
            *(guess(clients[index % number], begun, f"{index:04}") for index in range(guesses))
        )
        assert len(bank.tried) == len(set(bank.tried)) <= 3
        assert sum(one["resultType"] == "input_required" for one in replies) <= 2
        assert sum(bool(one.get("isError")) for one in replies) >= guesses - 2
        # Not even the right one, in any copy of the state.
        assert (await begun.guess(clients[-1], CODE)).get("isError")
    assert bank.paid == 0
    assert CODE not in bank.tried


async def test_guesses_one_after_another_from_the_first_state_are_as_few(bank: Bank) -> None:
    async with connected(bank) as client:
        begun = Begun(await send(client, "pay"))
        for number, code in enumerate(("0000", "1111")):
            assert "is not the code" in message(await begun.guess(client, code), "code"), number
        assert "no valid answer to 'code' after 3 attempts: code: is not the code" in failed(
            await begun.guess(client, "2222")
        )
        for code in ("3333", CODE):
            assert OVER in failed(await begun.guess(client, code))
    assert bank.tried == ["0000", "1111", "2222"]
    assert bank.paid == 0


async def test_the_last_try_settles_the_call_for_every_copy_of_its_states(bank: Bank) -> None:
    async with connected(bank) as client:
        first = Begun(await send(client, "pay"))
        second = Begun(await first.guess(client, "0000"))
        await second.guess(client, "1111")
        assert "after 3 attempts" in failed(await second.guess(client, "2222"))
        for state in (first, second):
            # The guess before has its try, and is asked for no more.
            assert "already settled with other answers" in failed(await state.guess(client, "0000"))
            assert OVER in failed(await state.guess(client, CODE))
        # The last request again gets its answer again.
        assert "after 3 attempts" in failed(await second.guess(client, "2222"))
    assert bank.paid == 0


# What takes a try


async def test_the_same_answer_sent_again_takes_no_try(bank: Bank) -> None:
    async with connected(bank) as client:
        begun = Begun(await send(client, "pay"))
        for _ in range(10):
            assert "is not the code" in message(await begun.guess(client, "0000"), "code")
        assert said(await begun.guess(client, CODE)) == "paid"
    assert bank.paid == 1


async def test_a_person_who_slips_twice_may_still_be_right(bank: Bank) -> None:
    async with connected(bank) as client:
        begun = Begun(await send(client, "pay"))
        for code in ("0000", "1111"):
            begun = Begun(await begun.guess(client, code))
        assert said(await begun.guess(client, CODE)) == "paid"
        assert said(await begun.guess(client, CODE)) == "paid"
    assert bank.paid == 1


async def test_an_answer_that_breaks_the_flat_schema_takes_no_try(bank: Bank) -> None:
    async with connected(bank) as client:
        begun = Begun(await send(client, "pay"))
        for number in range(5):
            assert "must have at most 4 characters" in failed(await begun.guess(client, "0" * (5 + number)))
        assert said(await begun.guess(client, CODE)) == "paid"
    assert bank.tried == [CODE]


async def test_a_decline_takes_no_try(bank: Bank) -> None:
    async with connected(bank) as client:
        begun = Begun(await send(client, "pay"))
        for code in ("0000", "1111"):
            await begun.guess(client, code)
        declined = await send(client, "pay", {begun.key: {"action": "decline"}}, begun.state)
        assert "elicitation was decline" in failed(declined)


async def test_a_new_call_has_new_tries(bank: Bank) -> None:
    async with connected(bank) as client:
        for _ in range(2):
            begun = Begun(await send(client, "pay"))
            for code in ("0000", "1111", "2222"):
                await begun.guess(client, code)
        assert said(await Begun(await send(client, "pay")).guess(client, CODE)) == "paid"
    assert len(bank.tried) == 7


async def test_one_attempt_means_one_try() -> None:
    bank = Bank(MemoryStore(), attempts=1)
    async with connected(bank) as client:
        begun = Begun(await send(client, "pay"))
        assert "after 1 attempt:" in failed(await begun.guess(client, "0000"))
        assert "was answered once in this call, and takes no more answers" in failed(await begun.guess(client, CODE))
    assert bank.tried == ["0000"]


async def test_a_question_that_changes_has_no_more_tries_than_one_that_does_not() -> None:
    """Tries are counted by the name of a question. Otherwise a message with the time of day would give new ones."""
    tried: list[str] = []
    mcp = MCPServer[Any]("bank", request_state_security=RequestStateSecurity(keys=KEYS), store=MemoryStore())

    class Code(BaseModel):
        code: str

        @field_validator("code")
        @classmethod
        def wrong(cls, value: str) -> str:
            tried.append(value)
            raise ValueError("wrong")

    async def seed() -> Elicit[str]:
        return Elicit("Which?", str)

    async def ask_code(seed: Annotated[str, Resolve(seed, key="seed")]) -> Elicit[Code]:
        return Elicit(f"The code for {seed}?", Code)

    @mcp.tool()
    async def pay(code: Annotated[Code, Resolve(ask_code, key="code")]) -> str:
        raise AssertionError

    async with Client(mcp, elicitation_callback=nobody) as client:
        first = await send(client, "pay")
        (key,) = first["inputRequests"]
        for number in range(10):
            asks = await send(client, "pay", {key: accept(value=str(number))}, first["requestState"])
            if "inputRequests" not in asks:
                assert "already settled with other answers" in failed(asks)
                break
            await Begun(asks).guess(client, str(number))
    assert len(tried) == 3


async def test_the_same_answer_to_another_question_takes_another_try() -> None:
    """One PIN for many accounts, each named by an answer before: the question is another one each time."""
    tried: list[str] = []
    mcp = MCPServer[Any]("bank", request_state_security=RequestStateSecurity(keys=KEYS), store=MemoryStore())

    async def ask_account() -> Elicit[str]:
        return Elicit("Which account?", str)

    async def ask_pin(account: Annotated[str, Resolve(ask_account, key="account")]) -> Elicit[BaseModel]:
        class Pin(BaseModel):
            code: str

            @field_validator("code")
            @classmethod
            def matches(cls, value: str) -> str:
                tried.append(account)
                raise ValueError("wrong")

        return Elicit("The PIN?", Pin)

    @mcp.tool()
    async def pay(pin: Annotated[BaseModel, Resolve(ask_pin, key="code")]) -> str:
        raise AssertionError

    async with Client(mcp, elicitation_callback=nobody) as client:
        first = await send(client, "pay")
        (key,) = first["inputRequests"]
        for number in range(10):
            asks = await send(client, "pay", {key: accept(value=str(number))}, first["requestState"])
            if "inputRequests" in asks:
                await Begun(asks).guess(client, "1234")
    assert len(tried) == 3


async def test_the_order_of_fields_makes_another_answer() -> None:
    tried: list[list[str]] = []
    mcp = MCPServer[Any]("bank", request_state_security=RequestStateSecurity(keys=KEYS), store=MemoryStore())

    class Digits(BaseModel):
        a: str
        b: str
        c: str

        @model_validator(mode="before")
        @classmethod
        def joined(cls, values: dict[str, str]) -> dict[str, str]:
            tried.append([*values])
            raise ValueError("wrong")

    async def ask_code() -> Elicit[Digits]:
        return Elicit("The code?", Digits)

    @mcp.tool()
    async def pay(code: Annotated[Digits, Resolve(ask_code, key="code")]) -> str:
        raise AssertionError

    async with Client(mcp, elicitation_callback=nobody) as client:
        begun = Begun(await send(client, "pay"))
        for order in permutations("abc"):
            await send(client, "pay", {begun.key: accept(**dict.fromkeys(order, "1"))}, begun.state)
    assert len(tried) == 3


class Counting(MemoryStore):
    """Counts tries."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    async def take_try(self, tries: Any, entry: Entry) -> int | None:
        self.tries += 1
        return await super().take_try(tries, entry)


class Form(BaseModel):
    name: str = Field(min_length=1, max_length=20)
    number: int = Field(ge=1, le=9)
    colour: Literal["red", "blue"]
    note: str | None = None
    sure: bool = False


async def test_a_form_whose_model_refuses_nothing_costs_no_operation_of_the_store(in_memory: Connect) -> None:
    store = Counting()
    mcp = MCPServer[Any]("desk", request_state_security=RequestStateSecurity(keys=KEYS), store=store)

    async def ask() -> Elicit[Form]:
        return Elicit("Please fill in", Form)

    @mcp.tool()
    async def fill(form: Annotated[Form, Resolve(ask, key="form")]) -> str:
        return form.name

    async with opened(in_memory, mcp) as client:
        first = await send(client, "fill")
        assert asked(first) == ["form"]
        (key,) = first["inputRequests"]
        answers = {key: accept(name="Ada", number=3, colour="red", sure=True)}
        assert said(await send(client, "fill", answers, first["requestState"])) == "Ada"
    assert store.tries == 0


async def test_a_store_that_is_full_lets_no_guess_reach_the_validator() -> None:
    bank = Bank(MemoryStore(max_claims=3))
    async with connected(bank) as client:
        begun = [Begun(await send(client, "pay")) for _ in range(2)]
        replies = [await one.guess(client, code) for one in begun for code in ("0000", "1111")]
        assert "cannot take more calls that ask questions now" in failed(replies[-1])
    assert len(bank.tried) == 3


async def test_a_guess_for_a_call_that_the_store_has_forgotten_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bank.db"
    bank = Bank(f"sqlite:{file}")
    async with connected(bank) as client:
        begun = Begun(await send(client, "pay"))
    file.unlink()
    async with connected(bank) as client:
        with pytest.raises(MCPError, match="no longer knows whether this call"):
            await begun.guess(client, CODE)
    assert not bank.tried
