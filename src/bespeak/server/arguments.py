"""A tool's arguments: the schema the model sees, and reading what it sends."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import to_json

from bespeak.resolve.errors import ToolError
from bespeak.resolve.hints import peel, spell
from bespeak.resolve.refusals import refusals
from bespeak.resolve.signature import Parameter


class InvalidArguments(ToolError):
    """What the model sent does not fit the tool's parameters."""


class Unschemable(Exception):
    """A parameter whose type cannot come from JSON."""

    def __init__(self, parameter: str, problem: str) -> None:
        self.parameter = parameter
        super().__init__(problem)


class Arguments:
    """The parameters that the client fills, and nothing else."""

    def __init__(self, name: str, parameters: Sequence[Parameter], schema: dict[str, Any] | None = None) -> None:
        fields: dict[str, Any] = {}
        self._renamed: dict[str, str] = {}
        for number, parameter in enumerate(parameters):
            field, definition = _field(parameter, number)
            fields[field] = definition
            if field != parameter.name:
                self._renamed[field] = parameter.name
        self._model = _model(f"{name}Arguments", fields, parameters)
        self._validate = self._model.__pydantic_validator__.validate_python
        self.schema = schema or {"type": "object", **_schema(self._model)}

    def read(self, sent: dict[str, Any]) -> dict[str, Any]:
        """The values of the parameters, defaults applied, anything else dropped. Raises `InvalidArguments`."""
        try:
            values: dict[str, Any] = self._validate(sent).__dict__
        except ValidationError:
            values = self._read_as_json(sent)
        return {self._renamed.get(name, name): value for name, value in values.items()} if self._renamed else values

    def _read_as_json(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Read once more by the rules for JSON, under which a strict parameter takes a date as text."""
        try:
            return vars(self._model.model_validate_json(to_json(sent)))
        except ValidationError as error:
            raise InvalidArguments(f"invalid arguments: {'; '.join(refusals(error, sent))}") from None


def _field(parameter: Parameter, number: int) -> tuple[str, Any]:
    """A model field for a parameter; renamed where pydantic could not take the parameter's own name."""
    default = ... if parameter.required else parameter.default
    name = parameter.name
    if not name.startswith("_") and not hasattr(BaseModel, name):
        return name, (parameter.hint, default)
    title = name.replace("_", " ").strip().title()
    peeled = peel(parameter.hint)
    hint: Any = Annotated[(peeled.core, Field(alias=name, title=title), *peeled.metadata)]
    return f"parameter_{number}", (hint, default)


def _model(name: str, fields: dict[str, Any], parameters: Sequence[Parameter]) -> type[BaseModel]:
    config = ConfigDict(protected_namespaces=())
    try:
        model: type[BaseModel] = create_model(name, __config__=config, **fields)
        _schema(model)
    except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUserError):
        for number, parameter in enumerate(parameters):
            try:
                field, definition = _field(parameter, number)
                _schema(create_model(name, __config__=config, **{field: definition}))
            except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUserError) as error:
                problem = f"parameter {parameter.name!r} takes {spell(parameter.hint)}, which cannot come from JSON"
                raise Unschemable(parameter.name, problem) from error
        raise
    return model


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True)
