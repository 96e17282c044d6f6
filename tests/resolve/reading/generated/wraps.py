"""Pieces of generated signatures: what can be put around a hint, from a union to a base class and a generic alias."""

import sys
from dataclasses import dataclass, replace

from tests.resolve.reading.generated.spellings import Spelling, Verdict


@dataclass(frozen=True, slots=True)
class Wrap:
    """Something with a hint inside; `{h}` stands for the hint, `{p}` for hint and default, `{n}` for a new number."""

    hint: str
    before: tuple[str, ...] = ()
    transparent: bool = False
    """A marker at the top is still at the top."""
    textual: bool = False
    keeps_default: bool = True
    """The default stays with the parameter. Otherwise it goes into `{p}`; without `{p}` there may be none."""
    only_markers: bool = False
    """What a client sends is not what stands inside, so that only a marker is lost there."""
    shown: bool = True
    """Works with plain types; pydantic does not read text everywhere."""
    since: tuple[int, int] = (3, 11)

    def takes(self, inner: Spelling) -> bool:
        holds_default = self.keeps_default or any("{p}" in line for line in self.before)
        return (
            sys.version_info >= self.since
            and (inner.default is None or holds_default)
            and (inner.marked or not self.only_markers)
            and (inner.verdict is not Verdict.SHOWN or (self.shown and not inner.textual))
        )

    def around(self, inner: Spelling, number: int) -> Spelling:
        def filled(text: str) -> str:
            text = text.replace("{n}", str(number)).replace("{q}", repr(inner.hint))
            return text.replace("{p}", inner.parameter).replace("{h}", inner.hint)

        lost = inner.verdict is Verdict.HONOURED and not self.transparent
        return replace(
            inner,
            hint=filled(self.hint),
            default=inner.default if self.keeps_default else None,
            before=(*inner.before, *map(filled, self.before)),
            verdict=Verdict.REFUSED if lost else inner.verdict,
            core=inner.core if self.transparent else filled(self.hint),
            textual=inner.textual or self.textual,
        )


def _fields(head: str, *more: str, decorated: str = "") -> tuple[str, ...]:
    body = "".join(f"\n    {line}" for line in ("inner: {p}", *more))
    return (f"{decorated}{head}:{body}",)


_VARIABLE = "T{n} = TypeVar('T{n}')"
_BOX = (_VARIABLE, "class Box{n}(BaseModel, Generic[T{n}]):\n    inner: T{n}")

WRAPS: dict[str, Wrap] = {
    "optional": Wrap("Optional[{h}]"),
    "union": Wrap("Union[int, {h}]"),
    "bar": Wrap("{h} | None"),
    "list": Wrap("list[{h}]"),
    "dict": Wrap("dict[str, {h}]"),
    "tuple": Wrap("tuple[int, {h}]"),
    "long tuple": Wrap("tuple[{h}, ...]"),
    "set": Wrap("set[{h}]", shown=False),  # of hashable things only
    "callable's parameter": Wrap("Callable[[{h}], int]", only_markers=True, shown=False),
    "callable's result": Wrap("Callable[[int], {h}]", only_markers=True, shown=False),
    "type": Wrap("type[{h}]", only_markers=True, shown=False),
    "sequence": Wrap("Sequence[{h}]"),
    "mapping": Wrap("Mapping[str, {h}]"),
    "described list": Wrap("Annotated[list[{h}], Field(max_length=3)]"),
    "described": Wrap("Annotated[{h}, Field(description='Sure?')]", transparent=True),
    "noted": Wrap("Annotated[{h}, 'a note']", transparent=True),
    "quoted": Wrap("{q}", transparent=True, textual=True),
    "model": Wrap("Model{n}", _fields("class Model{n}(BaseModel)"), keeps_default=False),
    "base of a model": Wrap(
        "Child{n}",
        (*_fields("class Model{n}(BaseModel)"), "class Child{n}(Model{n}):\n    more: int = 0"),
        keeps_default=False,
    ),
    "extra of a model": Wrap(
        "Open{n}", ("class Open{n}(BaseModel, extra='allow'):\n    __pydantic_extra__: dict[str, {h}]",)
    ),
    "root model": Wrap("Root{n}", ("class Root{n}(RootModel[{h}]):\n    pass",)),
    "generic model": Wrap("Box{n}[{h}]", _BOX),
    "base of a generic model": Wrap("Boxed{n}", (*_BOX, "class Boxed{n}(Box{n}[{h}]):\n    more: int = 0")),
    "dataclass": Wrap("Data{n}", _fields("class Data{n}", decorated="@dataclass\n"), keeps_default=False),
    "base of a dataclass": Wrap(
        "Derived{n}",
        (
            *_fields("class Data{n}", decorated="@dataclass\n"),
            "@dataclass\nclass Derived{n}(Data{n}):\n    more: int = 0",
        ),
        keeps_default=False,
    ),
    "keyword of a dataclass": Wrap(
        "Keyed{n}", _fields("class Keyed{n}", decorated="@dataclass(kw_only=True, slots=True)\n"), keeps_default=False
    ),
    "init variable of a dataclass": Wrap(
        "Init{n}", ("@dataclass\nclass Init{n}:\n    inner: InitVar[{h}]",), only_markers=True, shown=False
    ),
    "pydantic's dataclass": Wrap(
        "Checked{n}", _fields("class Checked{n}", decorated="@pydantic.dataclasses.dataclass\n"), keeps_default=False
    ),
    "generic dataclass": Wrap(
        "Crate{n}[{h}]", (_VARIABLE, "@dataclass\nclass Crate{n}(Generic[T{n}]):\n    inner: T{n}")
    ),
    "typed dict": Wrap("Row{n}", ("class Row{n}(TypedDict):\n    inner: {h}",)),
    "optional key": Wrap("Row{n}", ("class Row{n}(TypedDict, total=False):\n    inner: Required[{h}]",)),
    "base of a typed dict": Wrap(
        "Wide{n}", ("class Row{n}(TypedDict):\n    inner: {h}", "class Wide{n}(Row{n}):\n    more: int")
    ),
    "extra items": Wrap("Extra{n}", ("class Extra{n}(TypedDict, extra_items={h}):\n    more: int",)),
    "base of extra items": Wrap(
        "More{n}",
        (
            "class Extra{n}(TypedDict, extra_items={h}):\n    more: int",
            "class More{n}(Extra{n}):\n    pass",
        ),
    ),
    "named tuple": Wrap("Pair{n}", _fields("class Pair{n}(NamedTuple)"), keeps_default=False),
    "bound": Wrap("B{n}", ("B{n} = TypeVar('B{n}', bound={h})",)),
    "constraint": Wrap("K{n}", ("K{n} = TypeVar('K{n}', int, {h})",)),
    "variable's default": Wrap("D{n}", ("D{n} = typing_extensions.TypeVar('D{n}', default={h})",)),
    "alias": Wrap("Alias{n}", ("Alias{n} = TypeAliasType('Alias{n}', {h})",), transparent=True),
    "alias of text": Wrap("Lazy{n}", ("Lazy{n} = TypeAliasType('Lazy{n}', {q})",), transparent=True, textual=True),
    "alias of its parameter": Wrap(
        "Same{n}[{h}]",
        (_VARIABLE, "Same{n} = TypeAliasType('Same{n}', T{n}, type_params=(T{n},))"),
        transparent=True,
    ),
    "alias of a list of its parameter": Wrap(
        "Listed{n}[{h}]", (_VARIABLE, "Listed{n} = TypeAliasType('Listed{n}', list[T{n}], type_params=(T{n},))")
    ),
    "alias that ignores its parameter": Wrap(
        "Deaf{n}[{h}]",
        (_VARIABLE, "Deaf{n} = TypeAliasType('Deaf{n}', bool, type_params=(T{n},))"),
        only_markers=True,
    ),
    "alias that ignores one of two": Wrap(
        "Half{n}[bool, {h}]",
        (
            "A{n} = TypeVar('A{n}')",
            _VARIABLE,
            "Half{n} = TypeAliasType('Half{n}', list[A{n}], type_params=(A{n}, T{n}))",
        ),
        only_markers=True,
    ),
    "alias of many": Wrap(
        "Many{n}[int, {h}]",
        (
            "Ts{n} = TypeVarTuple('Ts{n}')",
            "Many{n} = TypeAliasType('Many{n}', tuple[Unpack[Ts{n}]], type_params=(Ts{n},))",
        ),
        shown=False,  # beyond pydantic
    ),
    "alias of one and many": Wrap(
        "First{n}[{h}, int]",
        (
            _VARIABLE,
            "Ts{n} = TypeVarTuple('Ts{n}')",
            "First{n} = TypeAliasType('First{n}', tuple[T{n}, Unpack[Ts{n}]], type_params=(T{n}, Ts{n}))",
        ),
        shown=False,
    ),
    "alias that ignores many": Wrap(
        "None{n}[int, {h}]",
        ("Ts{n} = TypeVarTuple('Ts{n}')", "None{n} = TypeAliasType('None{n}', bool, type_params=(Ts{n},))"),
        only_markers=True,
        shown=False,
    ),
    "new type": Wrap("New{n}", ("New{n} = NewType('New{n}', {h})",), transparent=True),
    "new type of a list": Wrap("News{n}", ("News{n} = NewType('News{n}', list[{h}])",)),
    "statement": Wrap("Stated{n}", ("type Stated{n} = {h}",), transparent=True, since=(3, 12)),
    "generic statement": Wrap("Kept{n}[{h}]", ("type Kept{n}[T] = T",), transparent=True, since=(3, 12)),
    "statement that ignores its parameter": Wrap(
        "Lost{n}[{h}]", ("type Lost{n}[T] = bool",), only_markers=True, since=(3, 12)
    ),
    "statement of many": Wrap("All{n}[int, {h}]", ("type All{n}[*Ts] = tuple[*Ts]",), shown=False, since=(3, 12)),
    "parameters of a class": Wrap("New{n}[{h}]", ("class New{n}[T](BaseModel):\n    inner: T",), since=(3, 12)),
}
