"""The test tool: test any MCP server with scripted answers, recordings and attacks."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bespeak.conversation.answers import CannotAnswer
    from bespeak.conversation.dialects import (
        InputRequest,
        InputRequiredResult,
        InputResponse,
        RequestState,
        build_retry_params,
        recognize_input_required,
    )
    from bespeak.conversation.fixtures import InputResponseFixture, MissingAnswer, collect_responses
    from bespeak.conversation.responses import Dialect, Question, Reading, Verdict, read_envelope
    from bespeak.conversation.results import Round
    from bespeak.conversation.rules import Finding
    from bespeak.conversation.steps import (
        DEFAULT_MAX_ELICITATION_ROUNDS,
        Chain,
        Conversation,
        MalformedResponse,
        RoundsExceeded,
        run_elicitation_chain,
    )
    from bespeak.testing.conversations import ConversationFailed, Conversed, converse

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
    "conversation.answers": ["CannotAnswer"],
    "conversation.steps": [
        "DEFAULT_MAX_ELICITATION_ROUNDS",
        "Chain",
        "Conversation",
        "MalformedResponse",
        "RoundsExceeded",
        "run_elicitation_chain",
    ],
    "testing.conversations": ["ConversationFailed", "Conversed", "converse"],
    "conversation.dialects": [
        "InputRequest",
        "InputRequiredResult",
        "InputResponse",
        "RequestState",
        "build_retry_params",
        "recognize_input_required",
    ],
    "conversation.rules": ["Finding"],
    "conversation.fixtures": ["InputResponseFixture", "MissingAnswer", "collect_responses"],
    "conversation.results": ["Round"],
    "conversation.responses": ["Dialect", "Question", "Reading", "Verdict", "read_envelope"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    # Lazily: pytest loads the plugin of this package in every run, even if nothing uses it.
    if name not in _HOME:
        raise AttributeError(f"module 'bespeak.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"bespeak.{_HOME[name]}"), name)
