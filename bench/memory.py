"""How much memory a process has."""

from pathlib import Path


def resident(pid: int) -> float:
    """MiB of memory a process has."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise LookupError("VmRSS")
