"""A till made with Bespeak, which the hostile suites must not be able to cheat."""
