"""Pieces of generated signatures: methods and classes whose parameter has the type variable of a generic class as its type."""

from tests.resolve.reading.generated.form import NEW_OBJECT, NOTED, Form, block, function, member

_VARIABLE = "T = TypeVar('T')"
_SERVE = member("serve", "self, title: str, answer: T")
_CRUD = (_VARIABLE, block("class Crud(Generic[T])", _SERVE))
_CALLED = (_VARIABLE, block("class Crud(Generic[T])", member("__call__", "self, title: str, answer: T")))
_MADE = (
    _VARIABLE,
    block("class Made(Generic[T])", member("__init__", "self, title: str, answer: T", NOTED, sort="def")),
)
_POST = "def __post_init__(self):\n    note(self.answer)"
_DATA = (_VARIABLE, block("@dataclass\nclass Data(Generic[T])", "title: str\nanswer: T", _POST))
_VALIDATED = "def model_post_init(self, context):\n    note(self.answer)"
_MODEL = (_VARIABLE, block("class Model(BaseModel, Generic[T])", "title: str\nanswer: T", _VALIDATED))
_CRUD_695 = block("class Crud[T]", _SERVE)
_MINE = "class Mine(Crud[{h}]):\n    pass"
_TARGET = "target = Mine().serve"
_PEP_695 = (3, 12)

READ: dict[str, Form] = {
    "method of a generic base": Form((*_CRUD, _MINE, _TARGET)),
    "method of a generic base of a base": Form(
        (
            *_CRUD,
            "U = TypeVar('U')\nV = TypeVar('V')",
            "class Middle(Crud[V], Generic[U, V]):\n    pass",
            "class Mine(Middle[int, {h}]):\n    pass",
            _TARGET,
        )
    ),
    "method of a generic base below one that uses its variable": Form(
        (
            *_CRUD,
            "class Middle(Crud[{h}], Generic[T]):\n    pass",
            "class Mine(Middle[int]):\n    pass",
            _TARGET,
        )
    ),
    "method of a generic base beside another": Form(
        (
            *_CRUD,
            block("class Other(Generic[T])", member("look", "self, answer: T")),
            "class Mine(Other[int], Crud[{h}]):\n    pass",
            _TARGET,
        )
    ),
    "class method of a generic base": Form(
        (
            _VARIABLE,
            block("class Crud(Generic[T])", "@classmethod\n" + member("serve", "cls, title: str, answer: T")),
            _MINE,
            "target = Mine.serve",
        )
    ),
    "partial method of a generic base": Form(
        (
            _VARIABLE,
            block(
                "class Crud(Generic[T])",
                member("whole", "self, title: str, answer: T, *, extra: int"),
                "serve = functools.partialmethod(whole, extra=1)",
            ),
            _MINE,
            _TARGET,
        )
    ),
    "wrapped method of a generic base": Form(
        (
            "def wrapping(fn):\n    @functools.wraps(fn)\n    async def wrapper(*args, **kwargs):\n"
            "        return await fn(*args, **kwargs)\n    return wrapper",
            _VARIABLE,
            block("class Crud(Generic[T])", "@wrapping\n" + _SERVE),
            _MINE,
            _TARGET,
        )
    ),
    "wrapped bound method of a generic base": Form(
        (
            *_CRUD,
            _MINE,
            "desk = Mine()",
            "@functools.wraps(desk.serve)\nasync def target(*args, **kwargs):\n"
            "    return await desk.serve(*args, **kwargs)",
        )
    ),
    "overridden method that calls a generic base": Form(
        (
            *_CRUD,
            block("class Mine(Crud[{h}])", member("serve", "self, title: str, answer: {p}")),
            _TARGET,
        )
    ),
    "method of an object of a generic class": Form((*_CRUD, "target = Crud[{h}]().serve"), given=True),
    "method of an object of a class with a generic base": Form(
        (*_CRUD, "U = TypeVar('U')", "class Mine(Crud[U]):\n    pass", "target = Mine[{h}]().serve"), given=True
    ),
    "callable object of a generic base": Form((*_CALLED, _MINE, "target = Mine()")),
    "callable object of a generic class": Form((*_CALLED, "target = Crud[{h}]()"), given=True),
    "method of a protocol": Form(
        (
            _VARIABLE,
            block("class Crud(Protocol[T])", _SERVE),
            _MINE,
            _TARGET,
        )
    ),
    "method of a generic model": Form(
        (_VARIABLE, block("class Crud(BaseModel, Generic[T])", _SERVE), "target = Crud[{h}]().serve"), validates=True
    ),
    "method of a base of a generic model": Form(
        (_VARIABLE, block("class Crud(BaseModel, Generic[T])", _SERVE), _MINE, _TARGET)
    ),
    "generic class": Form((*_MADE, "target = Made[{h}]"), makes=True, given=True),
    "class of a generic base": Form((*_MADE, "class target(Made[{h}]):\n    pass"), makes=True),
    "generic class by __new__": Form(
        (
            _VARIABLE,
            block("class Made(Generic[T])", member("__new__", "cls, title: str, answer: T", NEW_OBJECT, sort="def")),
            "class target(Made[{h}]):\n    pass",
        ),
        makes=True,
    ),
    "generic dataclass": Form((*_DATA, "target = Data[{h}]"), makes=True, given=True),
    "dataclass of a generic base": Form(
        (*_DATA, "@dataclass\nclass target(Data[{h}]):\n    def more(self): ..."), makes=True
    ),
    "class of a generic dataclass": Form((*_DATA, "class target(Data[{h}]):\n    pass"), makes=True),
    "dataclass of a generic base that uses its variable": Form(
        (
            *_DATA,
            "@dataclass\nclass Middle(Data[{h}], Generic[T]):\n    def more(self): ...",
            "@dataclass\nclass target(Middle[int]):\n    pass",
        ),
        makes=True,
    ),
    "generic model": Form((*_MODEL, "target = Model[{h}]"), makes=True, validates=True),
    "model of a generic base": Form(
        (*_MODEL, "class target(Model[{h}]):\n    def more(self): ..."), makes=True, validates=True
    ),
    "model of a generic base of a base": Form(
        (
            *_MODEL,
            "U = TypeVar('U')",
            "class Middle(Model[U], Generic[U]):\n    pass",
            "class target(Middle[{h}]):\n    def more(self): ...",
        ),
        makes=True,
        validates=True,
    ),
    "class with parameters": Form((_CRUD_695, _MINE, _TARGET), since=_PEP_695),
    "object of a class with parameters": Form((_CRUD_695, "target = Crud[{h}]().serve"), since=_PEP_695, given=True),
    "class with parameters of its base": Form(
        (_CRUD_695, "class Middle[U](Crud[U]):\n    pass", "class Mine(Middle[{h}]):\n    pass", _TARGET),
        since=_PEP_695,
    ),
    "dataclass with parameters": Form(
        (block("@dataclass\nclass Data[T]", "title: str\nanswer: T", _POST), "target = Data[{h}]"),
        makes=True,
        since=_PEP_695,
        given=True,
    ),
    "model with parameters": Form(
        (block("class Model[T](BaseModel)", "title: str\nanswer: T", _VALIDATED), "target = Model[{h}]"),
        makes=True,
        validates=True,
        since=_PEP_695,
    ),
}
"""The marker can be read, so it is honoured."""

LOSING: dict[str, Form] = {
    name: Form(statements, loses=True, makes=makes, since=since, unseen=True)
    for name, (statements, makes, since) in {
        "slots of a generic class": (
            (
                _VARIABLE,
                block("class Crud(Generic[T])", "__slots__ = ()", _SERVE),
                "target = Crud[{h}]().serve",
            ),
            False,
            (3, 11),
        ),
        "frozen dataclass that is generic": (
            (_VARIABLE, block("@dataclass(frozen=True)\nclass Crud(Generic[T])", _SERVE), "target = Crud[{h}]().serve"),
            False,
            (3, 11),
        ),
        "class method of a generic class": (
            (
                _VARIABLE,
                block("class Crud(Generic[T])", "@classmethod\n" + member("serve", "cls, title: str, answer: T")),
                "target = Crud[{h}].serve",
            ),
            False,
            (3, 11),
        ),
        "static method of a generic class": (
            (
                _VARIABLE,
                block("class Crud(Generic[T])", "@staticmethod\n" + member("serve", "title: str, answer: T")),
                "target = Crud[{h}].serve",
            ),
            False,
            (3, 11),
        ),
        "static method of a generic base": (
            (
                _VARIABLE,
                block("class Crud(Generic[T])", "@staticmethod\n" + member("serve", "title: str, answer: T")),
                _MINE,
                "target = Mine.serve",
            ),
            False,
            (3, 11),
        ),
        "object registered while it is made": (
            (
                _VARIABLE,
                "kept = []",
                block(
                    "class Crud(Generic[T])",
                    "__slots__ = ()",
                    "def __init__(self):\n    kept.append(self.serve)",
                    _SERVE,
                ),
                "Crud[{h}]()",
                "target = kept[0]",
            ),
            False,
            (3, 11),
        ),
        "generic class of many": (
            (
                "Ts = TypeVarTuple('Ts')",
                block(
                    "class Crud(Generic[Unpack[Ts]])", member("serve", "self, title: str, answer: tuple[Unpack[Ts]]")
                ),
                "class Mine(Crud[int, {h}]):\n    pass",
                _TARGET,
            ),
            False,
            (3, 11),
        ),
        "container of a generic class": (
            (
                _VARIABLE,
                block("class Crud(Generic[T])", member("serve", "self, title: str, answer: list[T] | None = None")),
                _MINE,
                _TARGET,
            ),
            False,
            (3, 11),
        ),
        "partial of a generic class": ((*_MADE, "target = functools.partial(Made[{h}])"), True, (3, 11)),
        "partial of a function of a generic class": (
            (*_CRUD, _MINE, "target = functools.partial(Mine.serve, Mine())"),
            False,
            (3, 11),
        ),
        "override without it of a generic base": (
            (*_CRUD, block("class Mine(Crud[{h}])", member("serve", "self, title: str, answer: {core}")), _TARGET),
            False,
            (3, 11),
        ),
        "override of a generic class without it": (
            (
                *_CRUD,
                "U = TypeVar('U')",
                block("class Loud(Crud[U])", member("serve", "self, title: str, answer: {core}")),
                "target = Loud[{h}]().serve",
            ),
            False,
            (3, 11),
        ),
        "typed dict that is generic": (
            (_VARIABLE, "class Row(TypedDict, Generic[T]):\n    title: str\n    answer: T", "target = Row[{h}]"),
            True,
            (3, 11),
        ),
        "keywords of a typed dict": (
            (
                "class Row(TypedDict):\n    title: str\n    answer: {h}",
                function("target", "**kwargs: Unpack[Row]", "return note(kwargs['answer'])"),
            ),
            False,
            (3, 11),
        ),
        "type of a class with parameters": (
            (
                block("class Crud[T]", "type Item = T", member("serve", "self, title: str, answer: Item")),
                _MINE,
                _TARGET,
            ),
            False,
            _PEP_695,
        ),
        "static method of a class with parameters": (
            (
                block("class Crud[T]", "@staticmethod\n" + member("serve", "title: str, answer: T")),
                _MINE,
                "target = Mine.serve",
            ),
            False,
            _PEP_695,
        ),
        "many parameters of a class": (
            (
                block("class Crud[*Ts]", member("serve", "self, title: str, answer: tuple[*Ts]")),
                "class Mine(Crud[int, {h}]):\n    pass",
                _TARGET,
            ),
            False,
            _PEP_695,
        ),
    }.items()
} | {
    "wrapper of a method of a generic base": Form(
        (
            *_CRUD,
            _MINE,
            "def wrapping(fn):\n    async def wrapper(title: str, answer: {core}) -> str:\n"
            "        return await fn(title, answer)\n    return wrapper",
            "target = wrapping(Mine().serve)",
        ),
        loses=True,
        fades=True,
    ),
}
"""The marker cannot be read, or has no effect where it stands."""
