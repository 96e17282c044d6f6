"""asyncio helpers that know nothing of MCP: awaiting in place, tasks, worker threads, a bounded queue."""
