"""Pieces of generated signatures: wrappers that hold the function in one place or another, and do not show its marker."""

from tests.resolve.reading.generated.form import Form, block, function, member

_WHOLE = function("whole", "title: str, answer: {p}")
_SHOWN = "title: str, answer: {core}"


def _wrapper(keep: str, call: str, shown: str = _SHOWN) -> Form:
    """A decorator that keeps `fn` in one way and calls it in another."""
    wrapping = block("def wrapping(fn)", keep, function("wrapper", shown, f"return await {call}"), "return wrapper")
    return Form((_WHOLE, wrapping, "target = wrapping(whole)"), loses=True, fades=True)


def _object(*members: str, call: str) -> Form:
    """A decorator that is a class."""
    calling = member("__call__", f"self, {_SHOWN}", f"return await {call}")
    return Form(
        (_WHOLE, block("class Wrapping", *members, calling), "target = Wrapping(whole)"), loses=True, fades=True
    )


_ALL = "(title, answer)"
_KEEPS = "def __init__(self, fn):\n    self.{kept} = fn"

HOLDERS: dict[str, Form] = {
    "closure": _wrapper("pass", f"fn{_ALL}"),
    "list": _wrapper("kept = [fn]", f"kept[0]{_ALL}"),
    "tuple": _wrapper("kept = (1, fn)", f"kept[1]{_ALL}"),
    "dict": _wrapper("kept = {'fn': fn}", f"kept['fn']{_ALL}"),
    "set": _wrapper("kept = {fn}", f"next(iter(kept)){_ALL}"),
    "list in a dict": _wrapper("kept = {'fns': [fn]}", f"kept['fns'][0]{_ALL}"),
    "object": _wrapper("kept = SimpleNamespace(fn=fn)", f"kept.fn{_ALL}"),
    "list of an object": _wrapper("kept = SimpleNamespace(fns=[fn])", f"kept.fns[0]{_ALL}"),
    "partial": _wrapper("kept = functools.partial(fn)", f"kept{_ALL}"),
    "partial in a list": _wrapper("kept = [functools.partial(fn)]", f"kept[0]{_ALL}"),
    "argument of a partial": _wrapper(
        "kept = functools.partial(lambda called, title, answer: called(title, answer), fn)", f"kept{_ALL}"
    ),
    "lambda": _wrapper("kept = lambda title, answer: fn(title, answer)", f"kept{_ALL}"),
    "wrapper that says so": _wrapper(
        "kept = functools.wraps(fn)(lambda *args: fn(*args))",
        f"kept{_ALL}",
    ),
    "default": _wrapper("pass", f"kept{_ALL}", f"{_SHOWN}, kept: SkipJsonSchema[Any] = fn"),
    "default in a list": Form(
        (
            _WHOLE,
            block(
                "def wrapping(fn)",
                function("wrapper", f"{_SHOWN}, kept=(fn,)", "return await kept[0](title, answer)"),
                "wrapper.__signature__ = inspect.Signature([one for one in inspect.signature(wrapper).parameters.values()"
                " if one.name != 'kept'], return_annotation=str)",
                "return wrapper",
            ),
            "target = wrapping(whole)",
        ),
        loses=True,
        fades=True,
    ),
    "default of a keyword": Form(
        (
            _WHOLE,
            block(
                "def wrapping(fn)",
                function("wrapper", f"{_SHOWN}, *, _kept=fn", "return await _kept(title, answer)"),
                "return functools.partial(wrapper, _kept=fn)",
            ),
            "target = wrapping(whole)",
        ),
        loses=True,
        fades=True,
    ),
    "attribute of the wrapper": Form(
        (
            _WHOLE,
            block(
                "def wrapping(fn)",
                function("wrapper", _SHOWN, "return await wrapping.made.fn(title, answer)"),
                "wrapper.fn = fn",
                "wrapping.made = wrapper",
                "return wrapper",
            ),
            "target = wrapping(whole)",
        ),
        loses=True,
        fades=True,
    ),
    "attribute of an object": _object(_KEEPS.replace("{kept}", "fn"), call=f"self.fn{_ALL}"),
    "slot": _object("__slots__ = ('fn',)", _KEEPS.replace("{kept}", "fn"), call=f"self.fn{_ALL}"),
    "list of an attribute": _object("def __init__(self, fn):\n    self.fns = [fn]", call=f"self.fns[0]{_ALL}"),
    "list of a slot": _object(
        "__slots__ = ('fns',)", "def __init__(self, fn):\n    self.fns = [fn]", call=f"self.fns[0]{_ALL}"
    ),
    "attribute of a class": _object(
        "def __init__(self, fn):\n    type(self).fn = staticmethod(fn)", call=f"self.fn{_ALL}"
    ),
    "dataclass": Form(
        (
            _WHOLE,
            block(
                "@dataclass(slots=True)\nclass Wrapping",
                "fn: Callable[..., Any]",
                member("__call__", f"self, {_SHOWN}", "return await self.fn(title, answer)"),
            ),
            "target = Wrapping(whole)",
        ),
        loses=True,
        fades=True,
    ),
    "object of a method": Form(
        (
            _WHOLE,
            block(
                "class Wrapping",
                _KEEPS.replace("{kept}", "fn"),
                member("serve", f"self, {_SHOWN}", "return await self.fn(title, answer)"),
            ),
            "target = Wrapping(whole).serve",
        ),
        loses=True,
        fades=True,
    ),
    "object of a closure": Form(
        (
            _WHOLE,
            block(
                "class Wrapping",
                _KEEPS.replace("{kept}", "fn"),
                block(
                    "def wrapper(self)",
                    function("inner", _SHOWN, "return await self.fn(title, answer)"),
                    "return inner",
                ),
            ),
            "target = Wrapping(whole).wrapper()",
        ),
        loses=True,
        fades=True,
    ),
    "method in a list": Form(
        (
            block("class Desk", member("serve", "self, title: str, answer: {p}")),
            block(
                "def wrapping(*fns)",
                function("wrapper", _SHOWN, "return await fns[0](title, answer)"),
                "return wrapper",
            ),
            "target = wrapping(Desk().serve)",
        ),
        loses=True,
        fades=True,
    ),
    "callable object in a list": Form(
        (
            block("class Desk", member("__call__", "self, title: str, answer: {p}")),
            block(
                "def wrapping(*fns)",
                function("wrapper", _SHOWN, "return await fns[0](title, answer)"),
                "return wrapper",
            ),
            "target = wrapping(Desk())",
        ),
        loses=True,
        fades=True,
    ),
    "class in the closure": Form(
        (
            block("class Made", member("__init__", "self, title: str, answer: {p}", "note(answer)", sort="def")),
            block(
                "def wrapping(made)",
                function("wrapper", _SHOWN, "made(title, answer); return 'done'"),
                "return wrapper",
            ),
            "target = wrapping(Made)",
        ),
        loses=True,
        fades=True,
    ),
    "wrapper of a wrapper": Form(
        (
            _WHOLE,
            block(
                "def wrapping(*fns)",
                function("wrapper", _SHOWN, "return await fns[0](title, answer)"),
                "return wrapper",
            ),
            "target = wrapping(wrapping(whole))",
        ),
        loses=True,
        fades=True,
    ),
    "wrapper with more parameters": Form(
        (
            _WHOLE,
            block(
                "def wrapping(*fns)",
                function("wrapper", f"{_SHOWN}, loud: bool = False", "return await fns[0](title, answer)"),
                "return functools.partial(wrapper, loud=True)",
            ),
            "target = wrapping(whole)",
        ),
        loses=True,
        fades=True,
    ),
    "single dispatch method": Form(
        (
            _WHOLE,
            "target = functools.singledispatch(whole)",
        ),
        makes=True,  # so that nothing wraps it: it cannot be called by name
        validates=True,
        loses=True,
        fades=True,
    ),
    "wrapped by a class that says so": Form(
        (
            _WHOLE,
            block(
                "class Wrapping",
                "def __init__(self, fn):\n    functools.update_wrapper(self, fn)",
                "async def __call__(self, *args, **kwargs):\n    return await self.__wrapped__(*args, **kwargs)",
            ),
            "target = Wrapping(whole)",
        ),
    ),
    "descriptor": Form(
        (
            block(
                "class Bound",
                "def __init__(self, fn):\n    self.fn = fn",
                "def __get__(self, one, owner):\n    return types.MethodType(self.fn, one)",
            ),
            block("class Desk", "@Bound\n" + member("serve", "self, title: str, answer: {p}")),
            "target = Desk().serve",
        ),
    ),
}
"""The wrapper shows the parameter with its type, and no marker."""
