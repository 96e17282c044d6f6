"""What each process of one `bespeak dev` is started with."""

from dataclasses import dataclass

HOST = "127.0.0.1"
PATH = "/mcp"


@dataclass(frozen=True, slots=True)
class DevSettings:
    """The server to load, and where it and its page are."""

    target: str
    port: int
    token: str

    @property
    def endpoint(self) -> str:
        """The full URL of the MCP endpoint."""
        return f"http://{HOST}:{self.port}{PATH}"
