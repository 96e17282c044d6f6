"""The test tool: test any MCP server with scripted answers, recordings and attacks."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bespeak.conversation.answers import CannotAnswer
    from bespeak.conversation.call_rounds import (
        DEFAULT_MAX_ELICITATION_ROUNDS,
        Conversation,
        MalformedResponse,
        Round,
        RoundsExceeded,
    )
    from bespeak.conversation.elicitation_chain import Chain, run_elicitation_chain
    from bespeak.conversation.fixtures import InputResponseFixture, MissingAnswer, collect_responses
    from bespeak.conversation.input_required import (
        InputRequest,
        InputRequiredResult,
        InputResponse,
        RequestState,
        build_retry_params,
        recognize_input_required,
    )
    from bespeak.conversation.profiles.profile import Profile, StartOver
    from bespeak.conversation.protocol_rules import Finding
    from bespeak.conversation.responses import Dialect, Question, Reading, Verdict, read_envelope
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
    "Profile",
    "Question",
    "Reading",
    "RequestState",
    "Round",
    "RoundsExceeded",
    "StartOver",
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
    "conversation.call_rounds": [
        "DEFAULT_MAX_ELICITATION_ROUNDS",
        "Conversation",
        "MalformedResponse",
        "Round",
        "RoundsExceeded",
    ],
    "conversation.elicitation_chain": ["Chain", "run_elicitation_chain"],
    "testing.conversations": ["ConversationFailed", "Conversed", "converse"],
    "conversation.input_required": [
        "InputRequest",
        "InputRequiredResult",
        "InputResponse",
        "RequestState",
        "build_retry_params",
        "recognize_input_required",
    ],
    "conversation.profiles.profile": ["Profile", "StartOver"],
    "conversation.protocol_rules": ["Finding"],
    "conversation.fixtures": ["InputResponseFixture", "MissingAnswer", "collect_responses"],
    "conversation.responses": ["Dialect", "Question", "Reading", "Verdict", "read_envelope"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    # Lazily: pytest loads the plugin of this package in every run, even if nothing uses it.
    if name not in _HOME:
        raise AttributeError(f"module 'bespeak.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"bespeak.{_HOME[name]}"), name)
