"""Pieces of generated signatures: what `target` is wrapped in once more, keeping its marker in sight or hiding it."""

from tests.resolve.reading.generated.form import Form, block, function, member

_CALLS = "made = {fn}(title, answer)\n    return await made if inspect.isawaitable(made) else made"
_SHOWN = "title: str, answer: {core}"


def _hiding(keep: str, kept: str, shown: str = _SHOWN) -> Form:
    wrapping = block(
        "def layer{n}(fn)", keep, function("wrapper", shown, _CALLS.replace("{fn}", kept)), "return wrapper"
    )
    return Form((wrapping, "target = layer{n}(target)"), loses=True, fades=True)


_OBJECT = block(
    "class Layer{n}",
    "__slots__ = ('kept',)",
    "def __init__(self, fn):\n    self.kept = fn",
    member("serve", f"self, {_SHOWN}", _CALLS.replace("{fn}", "self.kept")),
    member("__call__", f"self, {_SHOWN}", _CALLS.replace("{fn}", "self.kept")),
)
_ANY = "async def wrapper(*args, **kwargs):\n    " + _CALLS.replace("{fn}(title, answer)", "fn(*args, **kwargs)")

LAYERS: dict[str, Form] = {
    "wraps": Form(
        (block("def layer{n}(fn)", f"@functools.wraps(fn)\n{_ANY}", "return wrapper"), "target = layer{n}(target)")
    ),
    "partial": Form(("target = functools.partial(target)",)),
    "object that says what it wraps": Form(
        (
            block(
                "class Layer{n}",
                "def __init__(self, fn):\n    functools.update_wrapper(self, fn)",
                "async def __call__(self, *args, **kwargs):\n    made = self.__wrapped__(*args, **kwargs)\n"
                "    return await made if inspect.isawaitable(made) else made",
            ),
            "target = Layer{n}(target)",
        )
    ),
    "closure": _hiding("pass", "fn"),
    "list": _hiding("kept = [fn]", "kept[0]"),
    "dict": _hiding("kept = {'fn': fn}", "kept['fn']"),
    "list in a dict": _hiding("kept = {'fns': (1, [fn])}", "kept['fns'][1][0]"),
    "partial of it": _hiding("kept = functools.partial(fn)", "kept"),
    "default": _hiding("pass", "kept", f"{_SHOWN}, *, kept: SkipJsonSchema[Any] = fn"),
    "object": _hiding("kept = SimpleNamespace(fn=fn)", "kept.fn"),
    "slots of an object": Form((_OBJECT, "target = Layer{n}(target)"), loses=True, fades=True),
    "slots of the object of a method": Form((_OBJECT, "target = Layer{n}(target).serve"), loses=True, fades=True),
}
"""Each takes what is called `target`, and gives it that name."""
