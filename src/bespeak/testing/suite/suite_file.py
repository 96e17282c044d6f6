"""The keys and values of a suite file, as models. Suites are validated with them, and their JSON Schema is made of them."""

from typing import Annotated, Any, Literal, cast

from pydantic import AliasChoices, BeforeValidator, Field, WithJsonSchema, model_validator

from bespeak.conversation.call_rounds import DEFAULT_MAX_ELICITATION_ROUNDS
from bespeak.conversation.connection_settings import ERAS, TIMEOUT_SECONDS
from bespeak.conversation.profiles.known_profiles import KNOWN
from bespeak.conversation.server_targets import Target
from bespeak.protocol.versions import SPOKEN
from bespeak.testing.suite.answer_schema import ANSWERS, ROOTS
from bespeak.testing.suite.attack_keys import Fault, Stop, Tamper
from bespeak.testing.suite.probe_keys import WITH_PROBE, Probes
from bespeak.testing.suite.redact_keys import Redactions
from bespeak.testing.suite.setup_keys import Commands
from bespeak.testing.suite.suite_values import Flag, Maybe, Part, Seconds, Text, whole

MODES = ("auto", "modern", "legacy", *SPOKEN)

Answers = Annotated[Any, WithJsonSchema(ANSWERS)]
Expected = Annotated[
    Any,
    WithJsonSchema(
        {
            "description": "An expected value, or a matcher: contains, matches, schema, oneOf, not, absent, present, "
            "gt, lt, gte, lte, length, each, snapshot, equals."
        }
    ),
]


def _one(written: Any) -> Any:
    if isinstance(written, bool):
        raise ValueError("must be 1")
    return written


def _revision(written: Any) -> Any:
    return ERAS.get(written, written) if isinstance(written, str) else written


def _mode(written: Any) -> Any:
    return ERAS["modern"] if written == "modern" else written


Revision = Annotated[str, BeforeValidator(_revision), WithJsonSchema({"enum": [*ERAS, *SPOKEN]})]
"""A revision: by its date, or the newest one of an era."""
ProtocolMode = Annotated[str, BeforeValidator(_mode), WithJsonSchema({"enum": list(MODES)})]
Rounds = Annotated[int, Field(ge=0, le=1000), BeforeValidator(whole)]


class Server(Part):
    """How a server is reached: by a command over stdio, by a URL, by both, or as an object in this process."""

    command: Maybe[list[str]] = Field(
        default=None,
        min_length=1,
        description="The command that starts the server. It speaks over stdio unless there is a url.",
    )
    env: dict[str, str] = Field(default={}, description="Environment variables for the command.")
    cwd: Maybe[str] = Field(
        default=None, description="The working directory of the command. Default: the suite's folder."
    )
    url: Maybe[str] = Field(
        default=None,
        description="The server's URL. With a command, the command is started first; ${port} is a free port.",
        json_schema_extra={"pattern": r"^(https?://|\$\{)"},
    )
    headers: dict[str, str] = Field(default={}, description="Headers of every request to the url.")
    python: Maybe[str] = Field(
        default=None,
        description="FILE[:OBJECT] or MODULE[:OBJECT], a server in this process. "
        "OBJECT is an MCPServer, or a function that makes one.",
    )
    protocol: ProtocolMode = Field(
        default="auto", description="The protocol revision to use, unless a test names eras."
    )
    declare: Maybe[dict[str, Any]] = Field(
        default=None, description="The client capabilities to declare. Default: all."
    )
    timeout: Seconds = Field(
        default=TIMEOUT_SECONDS,
        description="The timeout of a request in seconds. Time that people take to answer does not count.",
    )
    roots: Maybe[Annotated[list[Any], WithJsonSchema(ROOTS)]] = Field(
        default=None, description="The client's roots, for a server that asks for them outside a call. Default: none."
    )
    answers: Answers = Field(default=None, description="The answers to questions outside a call.")

    @model_validator(mode="after")
    def _one_way(self) -> "Server":
        if (self.command is None and self.url is None) == (self.python is None):
            raise ValueError("a server needs a command, a url, both, or python")
        if self.command is None and (self.env or self.cwd is not None):
            raise ValueError("env and cwd are for a command")
        if self.url is None and self.headers:
            raise ValueError("headers are for a url")
        return self

    def target(self) -> Target:
        """Return how to reach it."""
        return Target(self.command, self.env, self.cwd, self.url, self.headers, self.python, self.timeout)


class Failing(Part):
    """A JSON-RPC error."""

    code: Expected = Field(default=None, description="The error code.")
    message: Expected = None
    data: Expected = None


class Expect(Part):
    """The expected outcome of a call. A key that is left out may be anything, but a failure must be expected explicitly."""

    rounds: Expected = Field(default=None, description="The number of rounds in which the server asked.")
    asked: Expected = Field(default=None, description="The names of all questions, in the order they arrived.")
    text: Expected = Field(default=None, description="The text of the result, its blocks joined by newlines.")
    content: Expected = None
    structuredContent: Expected = None
    isError: Maybe[bool] = None
    messages: Expected = Field(default=None, description="The messages of a prompt.")
    contents: Expected = Field(default=None, description="The contents of a resource.")
    result: Expected = Field(default=None, description="The whole result, without resultType and _meta.")
    error: Maybe[Failing] = Field(default=None, description="The JSON-RPC error that the call ends with.")
    notifications: Expected = Field(
        default=None, description="The notifications that arrived, each as {method, params}."
    )


class RoundExpect(Part):
    """What one round is expected to ask."""

    asks: Maybe[list[str]] = Field(default=None, description="The names of its questions.")
    messages: dict[str, Expected] = Field(default={}, description="The message of a question, by its name.")
    schemas: dict[str, Expected] = Field(default={}, description="The form schema of a question, by its name.")
    methods: dict[str, Expected] = Field(default={}, description="The method of a question, by its name.")
    state: Maybe[Literal["present", "absent"]] = Field(
        default=None, description="Whether the round returns a requestState."
    )


class RoundSpec(Part):
    """One round: the expected questions, and the answers to send."""

    expect: RoundExpect = RoundExpect()
    answer: Answers = None


class _Target(Part):
    tool: Maybe[str] = None
    prompt: Maybe[str] = None
    resource: Maybe[str] = None
    method: Maybe[Text] = Field(default=None, description="Any other request, such as tools/list.")
    arguments: Maybe[dict[str, Any]] = None
    params: Maybe[dict[str, Any]] = Field(default=None, description="The params of the method.")

    @model_validator(mode="after")
    def _one_target(self) -> "_Target":
        names = self._targets()
        if sum(getattr(self, name) is not None for name in names) != 1:
            raise ValueError(f"name exactly one of {', '.join(names[:-1])} and {names[-1]}")
        if self.resource is not None and self.arguments is not None:
            raise ValueError("a resource takes no arguments")
        if self.method is not None and self.arguments is not None:
            raise ValueError("a method takes params, not arguments")
        if self.method is None and self.params is not None:
            raise ValueError("params are for a method; a tool and a prompt take arguments")
        if self.method is not None and self.method.startswith("notifications/"):
            raise ValueError(f"{self.method} is a notification, and gets no response; name a request")
        if self.method == "subscriptions/listen":
            raise ValueError("subscriptions/listen stays open, so a test would never end")
        return self

    @classmethod
    def _targets(cls) -> tuple[str, ...]:
        """The keys of which there is exactly one."""
        return "tool", "prompt", "resource", "method"

    @property
    def request_method(self) -> str:
        """The method of the request."""
        if self.method is not None:
            return self.method
        return "tools/call" if self.tool is not None else "prompts/get" if self.prompt is not None else "resources/read"

    @property
    def request_params(self) -> dict[str, Any]:
        """The params of the request."""
        if self.method is not None:
            return self.params or {}
        if self.resource is not None:
            return {"uri": self.resource}
        return {"name": self.tool if self.tool is not None else self.prompt, "arguments": self.arguments or {}}


class _Answered(Part):
    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, written: Any) -> Any:
        if isinstance(written, dict) and "inputResponses" in written and "input_responses" in written:
            raise ValueError("inputResponses and input_responses are the same key; use one")
        return cast("Any", written)


_RESPONSES = Field(
    default=None, validation_alias=AliasChoices("inputResponses", "input_responses"), description="The answers to send."
)


class Verify(_Target, _Answered):
    """A call made afterwards, to check what the test has done."""

    inputResponses: Answers = _RESPONSES
    expect: Expect = Expect()


def _times(written: Any) -> Any:
    return 1 if written is True else whole(written)


def _listed(written: Any) -> Any:
    return [written] if isinstance(written, dict) else written


_TIMES: dict[str, Any] = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 10}, {"const": True}]}


class Case(_Answered):
    """One row of a table. Its keys replace those of the test."""

    name: str = Field(min_length=1)
    arguments: Maybe[dict[str, Any]] = None
    inputResponses: Answers = _RESPONSES
    rounds: Maybe[list[RoundSpec]] = None
    expect: Maybe[Expect] = None
    skip: Maybe[Text] = None
    xfail: Maybe[Text] = None


class AsProfile(Part):
    """What is expected instead when the test runs with a profile."""

    expect: Maybe[Expect] = None
    verify: Maybe[Annotated[list[Verify], Field(min_length=1), BeforeValidator(_listed)]] = None


class Test(_Target, _Answered):
    """One call with all its rounds."""

    name: str = Field(min_length=1)
    server: Maybe[str] = Field(default=None, description="The server to call. Not needed if there is only one.")
    probe: Maybe[Probes] = None
    inputResponses: Answers = _RESPONSES
    rounds: Maybe[list[RoundSpec]] = Field(
        default=None, description="Checks and answers for each round, instead of inputResponses."
    )
    expect: Expect = Expect()
    cases: Maybe[list[Case]] = Field(default=None, min_length=1)
    eras: Maybe[list[Revision]] = Field(
        default=None,
        min_length=1,
        description="Run the test at each of these protocol revisions. modern and legacy mean the newest of each era.",
    )
    capture: dict[str, str] = Field(
        default={}, description="Values of the result, by path. Later tests use them as ${name}."
    )
    declare: Maybe[dict[str, Any]] = Field(default=None, description="The client capabilities to declare.")
    redact: Redactions = Field(
        default=[], description="More values to keep out of cassettes, snapshots and reports, for this test alone."
    )
    skip: Maybe[Text] = Field(default=None, description="Do not run the test, for this reason.")
    xfail: Maybe[Text] = Field(default=None, description="The test is expected to fail, for this reason.")
    tags: Maybe[list[Text]] = Field(
        default=None, min_length=1, description="Names to select tests by: --tag, --not-tag, and pytest -m."
    )
    setup: Commands = Field(default=[], description="Commands to run before the test, in the suite's folder.")
    teardown: Commands = Field(default=[], description="Commands to run after the test, even if it failed.")
    tamper: Maybe[Tamper] = None
    fault: Maybe[Fault] = None
    stop: Maybe[Stop] = None
    retry: Maybe[Annotated[int, Field(ge=1, le=10), BeforeValidator(_times), WithJsonSchema(_TIMES)]] = Field(
        default=None,
        description="How many times the request is sent again after its response was lost. true means once.",
    )
    verify: Maybe[Annotated[list[Verify], Field(min_length=1), BeforeValidator(_listed)]] = Field(
        default=None, description="One or more calls made afterwards, to check what the test has done."
    )
    wire: Maybe[Literal["spec", "any", "list"]] = None
    maxRounds: Maybe[Rounds] = None
    timeout: Maybe[Seconds] = None
    fresh: Maybe[Flag] = Field(default=None, description="Restart the server for this test.")
    profiles: dict[str, AsProfile] = Field(
        default={},
        description="What is expected with --as NAME, by the name of the profile.",
        json_schema_extra={"propertyNames": {"anyOf": [{"enum": list(KNOWN)}, {"pattern": ":"}]}},
    )

    @classmethod
    def _targets(cls) -> tuple[str, ...]:
        return (*super()._targets(), "probe")

    @model_validator(mode="after")
    def _agree(self) -> "Test":
        useless = sorted(self.model_fields_set - WITH_PROBE) if self.probe is not None else ()
        if useless:
            raise ValueError(
                f"{useless[0]} has no effect in a test with probe; it goes with {', '.join(sorted(WITH_PROBE))}"
            )
        if self.inputResponses is not None and self.rounds is not None:
            raise ValueError("inputResponses and rounds both give answers; use one")
        if (self.fault is None or self.fault.drop is None) != (self.retry is None):
            raise ValueError("fault and retry go together: what is lost, and how often the request is sent again")
        attacks = [name for name in ("tamper", "fault", "stop") if getattr(self, name) is not None]
        if len(attacks) > 1:
            raise ValueError(f"{' and '.join(attacks)} cannot be combined; write separate tests")
        return self


class SuiteModel(Part):
    """A suite of tests."""

    version: Annotated[Literal[1], BeforeValidator(_one)]
    servers: dict[str, Server] = Field(min_length=1)
    tests: list[Test] = Field(min_length=1)
    include: Maybe[Annotated[list[Text], Field(min_length=1)]] = Field(
        default=None, description="Other files whose servers, tests and settings are part of this suite."
    )
    server: Maybe[str] = Field(
        default=None, description="The server of tests that do not name one. Not needed if there is only one."
    )
    eras: Maybe[list[Revision]] = Field(
        default=None, min_length=1, description="The protocol revisions of tests that do not name any."
    )
    wire: Literal["spec", "any", "list"] = Field(
        default="spec",
        description="The accepted format of questions: spec is the MCP format, list the compatibility dialect, any is both.",
    )
    maxRounds: Rounds = Field(
        default=DEFAULT_MAX_ELICITATION_ROUNDS, description="The maximum number of rounds to answer."
    )
    cassettes: Maybe[Annotated[str, Field(min_length=1)]] = Field(
        default=None, description="The folder of recorded conversations. Tests are replayed from it."
    )
    setup: Commands = Field(default=[], description="Commands to run before the first test, in the suite's folder.")
    teardown: Commands = Field(default=[], description="Commands to run after the last test of the suite.")
    redact: Redactions = Field(
        default=[],
        description="Values to keep out of cassettes, snapshots and reports: by path, or by {pattern: REGEX}.",
    )
