"""One program for each row. The Python of each framework runs it: `python -m comparison.rows.NAME FRAMEWORK`."""
