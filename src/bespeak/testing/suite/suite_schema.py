"""The JSON Schema of suite files, for editors and for `bespeak test --schema`."""

from typing import Any, cast

from bespeak.testing.suite.answer_schema import ANSWER, ANSWERS
from bespeak.testing.suite.suite_file import SuiteModel


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a suite file."""
    schema = SuiteModel.model_json_schema(by_alias=True)
    verify = schema["$defs"]["Test"]["properties"]["verify"]["anyOf"]
    verify.append({"$ref": "#/$defs/Verify"})  # one may be written without a list around it
    for part in schema["$defs"].values():
        if "inputResponses" in part["properties"]:  # which may be written in two ways
            part["properties"]["input_responses"] = part["properties"]["inputResponses"]
    schema["$defs"] |= {"Answers": ANSWERS, "Answer": ANSWER}
    schema = _without_null(_by_name(schema))
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "A suite of bespeak test"
    return schema


def _by_name(schema: Any, top: bool = True) -> Any:
    """Replace repeated parts by references."""
    if isinstance(schema, list):
        return [_by_name(one, False) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    for name, known in {"Answers": ANSWERS, "Answer": ANSWER}.items():
        if members.get("anyOf") == known["anyOf"]:
            return {"$ref": f"#/$defs/{name}"}
    told = {name: _by_name(one, False) for name, one in members.items() if name != "$defs"}
    if top:
        told["$defs"] = {
            name: {key: _by_name(one, False) for key, one in part.items()} for name, part in members["$defs"].items()
        }
    return told


def _without_null(schema: Any) -> Any:
    """Remove null as an option: optional keys are left out instead."""
    if isinstance(schema, list):
        return [_without_null(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = {name: _without_null(one) for name, one in cast("dict[str, Any]", schema).items()}
    if members.get("default", ...) is None:
        del members["default"]
    options = [one for one in members.get("anyOf", []) if one != {"type": "null"}]
    if len(options) == 1 and isinstance(members.get("anyOf"), list):
        return {**options[0], **{name: one for name, one in members.items() if name != "anyOf"}}
    return {**members, "anyOf": options} if "anyOf" in members else members
