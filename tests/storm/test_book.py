"""The till's book."""

from pathlib import Path

from storm.book import Entry, Event, read, write


def test_entries_are_read_as_they_were_written(tmp_path: Path) -> None:
    begun = Entry(Event.BEGUN, "c1", "ORD-1", 500, 7)
    ended = Entry(Event.ENDED, "c1", "ORD-1", 500, 7)
    for entry in (begun, ended):
        write(tmp_path / "book", entry)
    assert read((tmp_path / "book").read_text().splitlines()) == [begun, ended]
