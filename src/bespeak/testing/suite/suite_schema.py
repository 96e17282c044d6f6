"""The JSON Schema of suite files, for editors and for `bespeak test --schema`."""

from typing import Any, cast

from bespeak.testing.suite.answer_schema import ANSWER, ANSWERS
from bespeak.testing.suite.setup_keys import ARGV
from bespeak.testing.suite.suite_file import SuiteModel


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a suite file."""
    schema = SuiteModel.model_json_schema(by_alias=True)
    for part in ("Test", "AsProfile"):  # one may be written without a list around it
        schema["$defs"][part]["properties"]["verify"]["anyOf"].append({"$ref": "#/$defs/Verify"})
    for name, part in schema["$defs"].items():
        if "inputResponses" in part["properties"] and name != "Tamper":  # which may be written in two ways
            part["properties"]["input_responses"] = part["properties"]["inputResponses"]
    schema["$defs"] |= {"Answers": ANSWERS, "Answer": ANSWER}
    for part in (schema, schema["$defs"]["Test"]):
        for name in ("setup", "teardown"):
            commands = part["properties"][name]
            commands["items"] = {"anyOf": [ARGV, commands["items"]]}
    # What a suite includes may have the servers, or the tests.
    schema["required"] = ["version"]
    schema["anyOf"] = [{"required": ["servers", "tests"]}, {"required": ["include"]}]
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
