"""Pieces of generated signatures: overloads, classes whose fields and `__init__` differ, and aliases in the body of a class."""

from tests.resolve.reading.generated.form import NEW_OBJECT, NOTED, Form, block, function, member

_SHOWN = "title: str, answer: {core}"
_STUB = "@overload\nasync def {n}({s}title: {t}, answer: {h}) -> str: ..."
_INIT = member("__init__", f"self, {_SHOWN}", NOTED, sort="def")
_POST = "def __post_init__(self):\n    note(self.answer)"
_ATTRS_POST = "def __attrs_post_init__(self):\n    note(self.answer)"


def _stubs(name: str, first: str = "") -> str:
    return "\n".join(_STUB.replace("{n}", name).replace("{s}", first).replace("{t}", one) for one in ("str", "int"))


OVERLOADS: dict[str, Form] = {
    "overloads": Form((_stubs("target"), function("target", _SHOWN)), loses=True, fades=True),
    "overloads without hints below": Form(
        (_stubs("target"), function("target", "title, answer")), loses=True, fades=True
    ),
    "overloads of a method": Form(
        (block("class Desk", _stubs("serve", "self, "), member("serve", f"self, {_SHOWN}")), "target = Desk().serve"),
        loses=True,
        fades=True,
    ),
    "overloads of an inherited method": Form(
        (
            block("class Desk", _stubs("serve", "self, "), member("serve", f"self, {_SHOWN}")),
            block("class Loud(Desk)", member("serve", f"self, {_SHOWN}")),
            "target = Loud().serve",
        ),
        loses=True,
        fades=True,
    ),
    "overloads of an __init__": Form(
        (
            block(
                "class target",
                "@overload\ndef __init__(self, title: str, answer: {h}) -> None: ...",
                "@overload\ndef __init__(self, title: int, answer: {h}) -> None: ...",
                _INIT,
            ),
        ),
        loses=True,
        makes=True,
        fades=True,
    ),
    "overloads of a callable object": Form(
        (
            block("class Desk", _stubs("__call__", "self, "), member("__call__", f"self, {_SHOWN}")),
            "target = Desk()",
        ),
        loses=True,
        fades=True,
    ),
    "overloads of a wrapped function": Form(
        (
            "def wrapping(fn):\n    @functools.wraps(fn)\n    async def wrapper(*args, **kwargs):\n"
            "        return await fn(*args, **kwargs)\n    return wrapper",
            _stubs("target"),
            "@wrapping\n" + function("target", _SHOWN),
        ),
        loses=True,
        fades=True,
    ),
    "overloads of a held function": Form(
        (
            _stubs("whole"),
            function("whole", _SHOWN),
            block(
                "def wrapping(*fns)",
                function("wrapper", _SHOWN, "return await fns[0](title, answer)"),
                "return wrapper",
            ),
            "target = wrapping(whole)",
        ),
        loses=True,
        fades=True,
    ),
    "overloads and the marker": Form((_stubs("target"), function("target", "title: str, answer: {p}"))),
}

FIELDS: dict[str, Form] = {
    "class with an __init__ of its own": Form((block("class target", "answer: {h}", _INIT),), loses=True, makes=True),
    "class with a __new__ of its own": Form(
        (block("class target", "answer: {h}", member("__new__", f"cls, {_SHOWN}", NEW_OBJECT, sort="def")),),
        loses=True,
        makes=True,
    ),
    "dataclass without an __init__": Form(
        (block("@dataclass(init=False)\nclass target", "title: str", "answer: {h}", _INIT),), loses=True, makes=True
    ),
    "dataclass with an __init__": Form(
        (block("@dataclass\nclass target", "title: str", "answer: {h}", _INIT),), loses=True, makes=True
    ),
    "class below a dataclass with an __init__": Form(
        (
            block("@dataclass\nclass Data", "title: str", "answer: {h}"),
            block("class target(Data)", _INIT),
        ),
        loses=True,
        makes=True,
    ),
    "model with an __init__": Form(
        (
            block(
                "class target(BaseModel)",
                "title: str",
                "answer: {h}",
                f"def __init__(self, {_SHOWN}) -> None:\n    note(answer)\n    super().__init__(title=title, answer=answer)",
            ),
        ),
        validates=True,
        loses=True,
        makes=True,
    ),
    "base of a dataclass": Form(
        (
            block("@dataclass\nclass Data", "title: str", "answer: {h}"),
            block("@dataclass\nclass target(Data)", _POST),
        ),
        makes=True,
    ),
    "keyword of a base of a dataclass": Form(
        (
            block("@dataclass(kw_only=True, slots=True)\nclass Data", "title: str", "answer: {h}"),
            block("@dataclass(kw_only=True, slots=True)\nclass target(Data)", _POST),
        ),
        makes=True,
    ),
    "init variable": Form(
        (
            block(
                "@dataclass\nclass target",
                "title: str",
                "answer: InitVar[{h}]",
                "def __post_init__(self, answer):\n    note(answer)",
            ),
        ),
        loses=True,
        makes=True,
    ),
    "class of attrs": Form(
        (block("@attrs.define\nclass target", "title: str", "answer: {h}", _ATTRS_POST),), makes=True
    ),
    "base of a class of attrs": Form(
        (
            block("@attrs.define\nclass Base", "title: str", "answer: {h}"),
            block("@attrs.define\nclass target(Base)", _ATTRS_POST),
        ),
        makes=True,
    ),
    "private field of attrs": Form(
        (
            block(
                "@attrs.define\nclass target",
                "title: str",
                "_answer: {h}",
                _ATTRS_POST.replace("self.answer", "self._answer"),
            ),
        ),
        makes=True,
    ),
    "converter of attrs": Form(
        (block("@attrs.define\nclass target", "title: str", "answer: {h} = attrs.field(converter=same)", _ATTRS_POST),),
        loses=True,
        makes=True,
    ),
    "converter of attrs with a hint": Form(
        (
            "def converted(value: {core}) -> {core}:\n    return value",
            block(
                "@attrs.define\nclass target",
                "title: str",
                "answer: {h} = attrs.field(converter=converted)",
                _ATTRS_POST,
            ),
        ),
        loses=True,
        makes=True,
    ),
    "converter of a private field of attrs": Form(
        (
            block(
                "@attrs.define\nclass target",
                "title: str",
                "_answer: {h} = attrs.field(converter=same)",
                _ATTRS_POST.replace("self.answer", "self._answer"),
            ),
        ),
        loses=True,
        makes=True,
    ),
    "converter of a base of attrs": Form(
        (
            block("@attrs.define\nclass Base", "title: str", "answer: {h} = attrs.field(converter=same)"),
            block("@attrs.define\nclass target(Base)", _ATTRS_POST),
        ),
        loses=True,
        makes=True,
    ),
    "alias of attrs": Form(
        (
            block(
                "@attrs.define\nclass target",
                "title: str",
                "given: {h} = attrs.field(alias='answer', converter=same)",
                _ATTRS_POST.replace("self.answer", "self.given"),
            ),
        ),
        loses=True,
        makes=True,
    ),
    "type of an attribute of attrs": Form(
        (
            block(
                "@attrs.define\nclass target",
                "title = attrs.field(type=str)",
                "answer = attrs.field(type={h}, converter=same)",
                _ATTRS_POST,
            ),
        ),
        loses=True,
        makes=True,
    ),
    "attrs with an __init__": Form(
        (block("@attrs.define(init=False)\nclass target", "title: str", "answer: {h}", _INIT),), loses=True, makes=True
    ),
    "generic class of attrs": Form(
        (
            "T = TypeVar('T')",
            block("@attrs.define\nclass Data(Generic[T])", "title: str", "answer: T", _ATTRS_POST),
            "target = Data[{h}]",
        ),
        makes=True,
    ),
}

ALIASES: dict[str, Form] = {
    "alias in a class, of a method": Form(
        (
            "Word = {core}",
            block("class Desk", "Word = {h}", member("serve", "self, title: str, answer: Word")),
            "target = Desk().serve",
        )
    ),
    "alias in a class, of a static method": Form(
        (
            "Word = {core}",
            block("class Desk", "Word = {h}", "@staticmethod\n" + member("serve", "title: str, answer: Word")),
            "target = Desk.serve",
        )
    ),
    "alias in a class, of a class method": Form(
        (
            "Word = {core}",
            block("class Desk", "Word = {h}", "@classmethod\n" + member("serve", "cls, title: str, answer: Word")),
            "target = Desk.serve",
        )
    ),
    "alias in a class, of a function taken from its body": Form(
        (
            "Word = {core}",
            block("class Desk", "Word = {h}", member("serve", "title: str, answer: Word")),
            "target = Desk.serve",
        )
    ),
    "alias in a nested class": Form(
        (
            "Word = {core}",
            block(
                "class Outer",
                "Word = {core}",
                block("class Desk", "Word = {h}", "@staticmethod\n" + member("serve", "title: str, answer: Word")),
            ),
            "target = Outer.Desk.serve",
        )
    ),
    "alias in a class, of a wrapped method": Form(
        (
            "Word = {core}",
            block("class Desk", "Word = {h}", member("serve", "self, title: str, answer: Word")),
            "desk = Desk()",
            "@functools.wraps(desk.serve)\nasync def target(*args, **kwargs):\n    return await desk.serve(*args, **kwargs)",
        )
    ),
    "alias in a class, of a partial method": Form(
        (
            "Word = {core}",
            block(
                "class Desk",
                "Word = {h}",
                member("whole", "self, title: str, answer: Word, *, extra: int"),
                "serve = functools.partialmethod(whole, extra=1)",
            ),
            "target = Desk().serve",
        )
    ),
    "alias in a class, of an inherited method": Form(
        (
            "Word = {core}",
            block("class Base", "Word = {h}", member("serve", "self, title: str, answer: Word")),
            block("class Desk(Base)", "Word = {core}"),
            "target = Desk().serve",
        )
    ),
    "alias in a class, of its __init__": Form(
        (
            "Word = {core}",
            block(
                "class target", "Word = {h}", member("__init__", "self, title: str, answer: Word", NOTED, sort="def")
            ),
        ),
        makes=True,
    ),
    "alias in a dataclass": Form(
        (
            "Word = {core}",
            block("@dataclass\nclass target", "Word = {h}", "title: str", "answer: Word", _POST),
        ),
        makes=True,
    ),
    "alias in a base of a dataclass": Form(
        (
            "Word = {core}",
            block("@dataclass\nclass Base", "Word = {h}", "title: str", "answer: Word"),
            block("@dataclass\nclass target(Base)", _POST),
        ),
        makes=True,
    ),
    "alias in a base of a class of attrs": Form(
        (
            "Word = {core}",
            block("@attrs.define\nclass Base", "Word = {h}", "title: str", "answer: Word"),
            block("@attrs.define\nclass target(Base)", _ATTRS_POST),
        ),
        makes=True,
    ),
    "alias in a model": Form(
        (
            "Word = {core}",
            block(
                "class target(BaseModel)",
                "Word: ClassVar = {h}",
                "title: str",
                "answer: Word",
                "def model_post_init(self, context):\n    note(self.answer)",
            ),
        ),
        validates=True,
        loses=True,
        makes=True,
    ),
    "alias in the class of a held method": Form(
        (
            "Word = {core}",
            block("class Desk", "Word = {h}", member("serve", "self, title: str, answer: Word")),
            block(
                "def wrapping(*fns)",
                function("wrapper", "title: str, answer: Word", "return await fns[0](title, answer)"),
                "return wrapper",
            ),
            "target = wrapping(Desk().serve)",
        ),
        loses=True,
        fades=True,
    ),
}
