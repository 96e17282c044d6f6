"""The names of questions: `module:qualname`, a number for further resolvers of the same name, or what the author wrote."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from bespeak.resolve.graph.faults import Faults
from bespeak.resolve.graph.model import Draft
from bespeak.resolve.graph.replacements import identity
from bespeak.resolve.reading.callables import base_key


def question_names(drafts: Sequence[Draft], given_names: Mapping[Hashable, str], faults: Faults) -> list[str]:
    """Return the name of each resolver's questions, in graph order. `given_names` are those of an earlier compilation."""
    seen: dict[str, int] = {}
    keys: list[str] = []
    for draft in drafts:
        given = given_names.get(identity(draft.original), draft.marker.key)
        if given is not None:
            key = given
            if not _is_text(key):
                problem = "the key of a question is not printable text" if key else "the key of a question is empty"
                faults.add(draft.signature.place, draft.trail, problem, "give it a name")
            elif "~" in key:
                faults.add(
                    draft.signature.place,
                    draft.trail,
                    f"the key {key!r} contains '~', which separates a question's name from the digest of its wording",
                    "write the key without '~'",
                )
        else:
            base = base_key(draft.original)
            key = f"{base}#{seen[base]}" if base in seen else base
            seen[base] = seen.get(base, 0) + 1
            while key in given_names.values():
                key = f"{base}#{seen[base]}"
                seen[base] += 1
        if key in keys:
            other = drafts[keys.index(key)].signature.name
            faults.add(
                draft.signature.place,
                draft.trail,
                f"the key {key!r} of {draft.signature.name!r} is also the key of {other!r}",
                "give each question its own key",
            )
        keys.append(key)
    return keys


def _is_text(key: Any) -> bool:
    return isinstance(key, str) and bool(key) and key.isprintable()
