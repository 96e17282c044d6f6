"""From a question to its answer: forms, rendering, pins, keys, reading answers, and progress."""
