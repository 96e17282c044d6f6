# pyright: basic, reportMissingImports=false
"""The Tasks extension of the protocol."""

from importlib.metadata import metadata

from comparison import frameworks as f

extras = metadata(f.FRAMEWORK).get_all("Provides-Extra") or []
f.report("tasks" in extras, f"`{f.FRAMEWORK}[tasks]`" if "tasks" in extras else "no package or extra for it")
