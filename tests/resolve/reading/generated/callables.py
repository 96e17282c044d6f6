"""Pieces of generated signatures: the functions, methods, classes and decorated things that have the parameter."""

from tests.resolve.reading.generated import classes, generics
from tests.resolve.reading.generated.form import Form
from tests.resolve.reading.generated.holders import HOLDERS


def _function(
    name: str, parameters: str, body: str = "return note(answer)", indent: str = "", sort: str = "async def"
) -> str:
    return f"{indent}{sort} {name}({parameters}) -> str:\n{indent}    {body}"


def _class(name: str, *members: str, bases: str = "") -> str:
    return f"class {name}{bases}:\n" + "\n".join(members)


def _member(name: str, parameters: str, *, body: str = "return note(answer)", sort: str = "async def") -> str:
    shown = "" if name in ("__init__", "__new__") or sort == "def" else " -> str"
    return f"    {sort} {name}({parameters}){shown}:\n        {body}"


_MARKED_DESK = _class("Desk", _member("serve", "self, title: str, answer: {h}"))
_MADE = "note(answer)"
_WRAPPING = """\
def wrapping(fn):
    @functools.wraps(fn)
    async def wrapper(*args, **kwargs):
        return await fn(*args, **kwargs)
    return wrapper"""
_NEW = "note(answer); return object.__new__(cls)"

_PLAIN: dict[str, Form] = {
    "function": Form((_function("target", "title: str, answer: {p}"),)),
    "sync function": Form((_function("target", "title: str, answer: {p}", sort="def"),)),
    "keyword": Form((_function("target", "title: str, *, answer: {p}"),)),
    "partial": Form(
        (
            _function("whole", "title: str, answer: {p}, *, extra: int"),
            "target = functools.partial(whole, extra=1)",
        )
    ),
    "method": Form((_class("Desk", _member("serve", "self, title: str, answer: {p}")), "target = Desk().serve")),
    "partial of a method": Form(
        (
            _class("Desk", _member("serve", "self, title: str, answer: {p}, *, extra: int")),
            "target = functools.partial(Desk().serve, extra=1)",
        )
    ),
    "class method": Form(
        (
            _class("Desk", "    @classmethod", _member("serve", "cls, title: str, answer: {p}")),
            "target = Desk.serve",
        )
    ),
    "inherited method": Form(
        (
            _class("Desk", _member("serve", "self, title: str, answer: {p}")),
            _class("Quiet", "    pass", bases="(Desk)"),
            "target = Quiet().serve",
        )
    ),
    "overriding method that repeats it": Form(
        (
            _MARKED_DESK,
            _class("Loud", _member("serve", "self, title: str, answer: {p}"), bases="(Desk)"),
            "target = Loud().serve",
        )
    ),
    "overriding method": Form(
        (
            _MARKED_DESK,
            _class("Loud", _member("serve", "self, title: str, answer: {core}"), bases="(Desk)"),
            "target = Loud().serve",
        ),
        loses=True,
    ),
    "method that overrides from the side": Form(
        (
            _MARKED_DESK,
            _class("Loud", _member("serve", "self, title: str, answer: {core}")),
            _class("Both", "    pass", bases="(Loud, Desk)"),
            "target = Both().serve",
        ),
        loses=True,
    ),
    "partial of an overriding method": Form(
        (
            _MARKED_DESK,
            _class("Loud", _member("serve", "self, title: str, answer: {core}, *, extra: int"), bases="(Desk)"),
            "target = functools.partial(Loud().serve, extra=1)",
        ),
        loses=True,
    ),
    "overriding class method": Form(
        (
            _class("Desk", "    @classmethod", _member("serve", "cls, title: str, answer: {h}")),
            _class("Loud", "    @classmethod", _member("serve", "cls, title: str, answer: {core}"), bases="(Desk)"),
            "target = Loud.serve",
        ),
        loses=True,
    ),
    "callable object": Form((_class("Desk", _member("__call__", "self, title: str, answer: {p}")), "target = Desk()")),
    "overriding callable object": Form(
        (
            _class("Desk", _member("__call__", "self, title: str, answer: {h}")),
            _class("Loud", _member("__call__", "self, title: str, answer: {core}"), bases="(Desk)"),
            "target = Loud()",
        ),
        loses=True,
    ),
    "class": Form(
        (_class("target", _member("__init__", "self, title: str, answer: {p}", body=_MADE, sort="def")),), makes=True
    ),
    "class by __new__": Form(
        (_class("target", _member("__new__", "cls, title: str, answer: {p}", body=_NEW, sort="def")),), makes=True
    ),
    "class by its metaclass": Form(
        (
            _class(
                "Meta",
                _member("__call__", "cls, title: str, answer: {p}", body="note(answer); return 'done'", sort="def"),
                bases="(type)",
            ),
            _class("target", "    pass", bases="(metaclass=Meta)"),
        ),
        makes=True,
    ),
    "dataclass": Form(
        (
            "@dataclass\nclass target:\n    title: str\n    answer: {p}\n    def __post_init__(self):\n        note(self.answer)",
        ),
        makes=True,
    ),
    "overriding __init__": Form(
        (
            _class("Desk", _member("__init__", "self, title: str, answer: {h}", body=_MADE, sort="def")),
            _class(
                "target",
                _member("__init__", "self, title: str, answer: {core}", body=_MADE, sort="def"),
                bases="(Desk)",
            ),
        ),
        loses=True,
        makes=True,
    ),
    "overriding __new__": Form(
        (
            _class("Desk", _member("__new__", "cls, title: str, answer: {h}", body=_NEW, sort="def")),
            _class(
                "target", _member("__new__", "cls, title: str, answer: {core}", body=_NEW, sort="def"), bases="(Desk)"
            ),
        ),
        loses=True,
        makes=True,
    ),
    "__new__ before __init__": Form(
        (
            _class(
                "target",
                _member("__new__", "cls, title: str, answer: {core}", body=_NEW, sort="def"),
                _member("__init__", "self, title: str, answer: {h}", body="pass", sort="def"),
            ),
        ),
        loses=True,
        makes=True,
    ),
    "metaclass before __init__": Form(
        (
            _class(
                "Meta",
                _member("__call__", "cls, title: str, answer: {core}", body="note(answer); return 'done'", sort="def"),
                bases="(type)",
            ),
            _class(
                "target",
                _member("__init__", "self, title: str, answer: {h}", body="pass", sort="def"),
                bases="(metaclass=Meta)",
            ),
        ),
        loses=True,
        makes=True,
    ),
    "overriding metaclass": Form(
        (
            _class(
                "Meta",
                _member("__call__", "cls, title: str, answer: {h}", body="note(answer); return 'done'", sort="def"),
                bases="(type)",
            ),
            _class(
                "Loud",
                _member("__call__", "cls, title: str, answer: {core}", body="note(answer); return 'done'", sort="def"),
                bases="(Meta)",
            ),
            _class("target", "    pass", bases="(metaclass=Loud)"),
        ),
        loses=True,
        makes=True,
    ),
    "overriding dataclass": Form(
        (
            "@dataclass\nclass Desk:\n    title: str\n    answer: {h}",
            "@dataclass\nclass target(Desk):\n    answer: {core}\n    def __post_init__(self):\n        note(self.answer)",
        ),
        loses=True,
        makes=True,
    ),
    "wrapped": Form(
        (
            _WRAPPING,
            "@wrapping\n" + _function("target", "title: str, answer: {p}"),
        )
    ),
    "wrapped twice": Form(
        (
            _WRAPPING,
            "@wrapping\n@wrapping\n" + _function("target", "title: str, answer: {p}"),
        )
    ),
    "wrapped without a word": Form(
        (
            "def wrapping(fn):\n    async def wrapper(*args, **kwargs):\n"
            "        return await fn(*args, **kwargs)\n    return wrapper",
            _function("whole", "title: str, answer: {p}"),
            "target = wrapping(whole)",
        ),
        loses=True,
    ),
    "copied annotations": Form(
        (
            "def copying(fn):\n    async def wrapper(title, answer):\n        return await fn(title, answer)\n"
            "    wrapper.__annotations__ = dict(fn.__annotations__)\n    return wrapper",
            "@copying\n" + _function("target", "title: str, answer: {p}"),
        ),
        takes_default=False,
    ),
    "annotations copied elsewhere": Form(
        ("@elsewhere.copying\n" + _function("target", "title: str, answer: {p}"),), elsewhere=True, takes_default=False
    ),
    "wrapped elsewhere, and not said": Form(
        ("@elsewhere.wrapping\n" + _function("target", "title: str, answer: {p}"),), elsewhere=True, takes_default=False
    ),
    "annotations shared elsewhere": Form(
        ("@elsewhere.sharing\n" + _function("target", "title: str, answer: {p}"),), elsewhere=True, takes_default=False
    ),
    "annotations copied elsewhere twice": Form(
        ("@elsewhere.copying\n@elsewhere.wrapping\n" + _function("target", "title: str, answer: {p}"),),
        elsewhere=True,
        takes_default=False,
    ),
    "annotations copied elsewhere below a class": Form(
        ("@elsewhere.Wrapper\n@elsewhere.copying\n" + _function("target", "title: str, answer: {p}"),),
        elsewhere=True,
        takes_default=False,
    ),
    "wrapped elsewhere": Form(("@elsewhere.honest\n" + _function("target", "title: str, answer: {p}"),)),
    "signature kept": Form(
        (_function("target", "title: str, answer: {p}"), "target.__signature__ = inspect.signature(target)")
    ),
    "signature that hides it": Form(
        (
            _function("target", "title: str, answer: {h}"),
            _function("shown", "title: str, answer: {core}"),
            "target.__signature__ = inspect.signature(shown)",
        ),
        loses=True,
    ),
    "wrapped, with a signature that hides it": Form(
        (
            _function("whole", "title: str, answer: {h}"),
            "@functools.wraps(whole)\nasync def target(title: str, answer: {core}) -> str:\n"
            "    return await whole(title, answer)",
            _function("shown", "title: str, answer: {core}"),
            "target.__signature__ = inspect.signature(shown)",
        ),
        loses=True,
    ),
    "wrapped by one that repeats it": Form(
        (
            _function("whole", "title: str, answer: {h}"),
            "@functools.wraps(whole)\nasync def target(title: str, answer: {core}) -> str:\n"
            "    return await whole(title, answer)",
        ),
    ),
}

FORMS: dict[str, Form] = {
    **_PLAIN,
    **generics.READ,
    **generics.LOSING,
    **{f"held in: {name}": form for name, form in HOLDERS.items()},
    **classes.OVERLOADS,
    **classes.FIELDS,
    **classes.ALIASES,
}

ELSEWHERE = """\
import functools

def copying(fn):
    async def wrapper(title, answer):
        return await fn(title, answer)
    wrapper.__annotations__ = dict(fn.__annotations__)
    return wrapper

def sharing(fn):
    async def wrapper(title, answer):
        return await fn(title, answer)
    wrapper.__annotations__ = fn.__annotations__
    wrapper.__name__ = fn.__name__
    return wrapper

class Wrapper:
    def __init__(self, fn):
        functools.update_wrapper(self, fn)
        self.fn = fn

    async def __call__(self, title, answer):
        return await self.fn(title, answer)

def wrapping(fn):
    @functools.wraps(fn)
    async def wrapper(title, answer):
        return await fn(title, answer)
    del wrapper.__wrapped__
    return wrapper

def honest(fn):
    @functools.wraps(fn)
    async def wrapper(*args, **kwargs):
        return await fn(*args, **kwargs)
    return wrapper
"""
"""Decorators of a module in which the same names mean other things."""
