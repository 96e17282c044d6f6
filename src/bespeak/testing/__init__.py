"""The test tool: conversations with any MCP server, scripted, recorded and attacked."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bespeak.testing.answers import CannotAnswer
    from bespeak.testing.chain import (
        DEFAULT_MAX_ELICITATION_ROUNDS,
        Chain,
        Conversation,
        MalformedResponse,
        RoundsExceeded,
        run_elicitation_chain,
    )
    from bespeak.testing.conversing import ConversationFailed, Conversed, converse
    from bespeak.testing.dialects import (
        InputRequest,
        InputRequiredResult,
        InputResponse,
        RequestState,
        build_retry_params,
        recognize_input_required,
    )
    from bespeak.testing.findings import Finding
    from bespeak.testing.fixtures import InputResponseFixture, MissingAnswer, collect_responses
    from bespeak.testing.results import Round
    from bespeak.testing.verdicts import Dialect, Question, Reading, Verdict, read_envelope

__all__ = [
    "DEFAULT_MAX_ELICITATION_ROUNDS",
    "CannotAnswer",
    "Chain",
    "Conversation",
    "ConversationFailed",
    "Conversed",
    "Dialect",
    "Finding",
    "InputRequest",
    "InputRequiredResult",
    "InputResponse",
    "InputResponseFixture",
    "MalformedResponse",
    "MissingAnswer",
    "Question",
    "Reading",
    "RequestState",
    "Round",
    "RoundsExceeded",
    "Verdict",
    "build_retry_params",
    "collect_responses",
    "converse",
    "read_envelope",
    "recognize_input_required",
    "run_elicitation_chain",
]

_HOMES = {
    "answers": ["CannotAnswer"],
    "chain": [
        "DEFAULT_MAX_ELICITATION_ROUNDS",
        "Chain",
        "Conversation",
        "MalformedResponse",
        "RoundsExceeded",
        "run_elicitation_chain",
    ],
    "conversing": ["ConversationFailed", "Conversed", "converse"],
    "dialects": [
        "InputRequest",
        "InputRequiredResult",
        "InputResponse",
        "RequestState",
        "build_retry_params",
        "recognize_input_required",
    ],
    "findings": ["Finding"],
    "fixtures": ["InputResponseFixture", "MissingAnswer", "collect_responses"],
    "results": ["Round"],
    "verdicts": ["Dialect", "Question", "Reading", "Verdict", "read_envelope"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    # Lazily: pytest loads the plugin of this package in every run, also in those that have nothing to do with it.
    if name not in _HOME:
        raise AttributeError(f"module 'bespeak.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"bespeak.testing.{_HOME[name]}"), name)
