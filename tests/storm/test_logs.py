"""What is read from the logs of workers."""

from storm.logs import complaints, tracebacks

LOG = """\
INFO:     Started server process [1]
tool 'charge' failed
Traceback (most recent call last):
  File "till.py", line 1
ValueError: no
a message from another worker was refused: 4f2
a message from another worker was refused: 913
"""


def test_a_traceback_comes_with_the_line_before_it() -> None:
    (found,) = tracebacks(LOG)
    assert found.startswith("tool 'charge' failed\nTraceback (most recent call last):\n")


def test_complaints_are_counted_without_their_numbers() -> None:
    assert complaints([LOG])["a message from another worker was refused: N"] == 2
    assert not complaints(["INFO:     Started server process [1]\n"])
