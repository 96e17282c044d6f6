# pyright: basic, reportMissingImports=false
"""The version that was measured, and the Pythons it can be installed on."""

from importlib.metadata import metadata

from comparison import frameworks as f

about = metadata(f.FRAMEWORK)
f.report(
    not about["Version"].startswith("0."), f"{about['Version']}, Python {about['Requires-Python'].replace(',<', ', <')}"
)
