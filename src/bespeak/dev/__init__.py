"""The page of `bespeak dev`, and the process that starts the server again when its source changes."""
