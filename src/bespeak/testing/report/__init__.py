"""Reports of a run: for people, as JSON and as JUnit XML."""
