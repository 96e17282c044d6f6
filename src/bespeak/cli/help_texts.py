"""How the help of a command shows its arguments and options: by what to write there, without the names of Python types.

The releases of typer differ in this. Some show a type beside each argument and each flag.
"""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command of `bespeak`."""

    def get_params(self, ctx: Any) -> Any:
        return _without_types(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *(_usage(one) for one in self.params if one.param_type_name == "argument")]


class Group(TyperGroup):
    """Commands of `bespeak` with a first word in common."""

    def get_params(self, ctx: Any) -> Any:
        return _without_types(super().get_params(ctx))


def _without_types(parameters: Any) -> Any:
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
        elif one.param_type_name == "argument":  # its metavar is its name
            one.display_type_rich = _nothing
    return parameters


def _nothing(ctx: Any) -> str:
    return ""


def _usage(argument: Any) -> str:
    name = argument.metavar if argument.required else f"[{argument.metavar}]"
    return name if argument.nargs == 1 else f"{name}..."
