"""Helpers for asyncio, independent of MCP: awaiting in the current task, tasks, worker threads, a bounded outbox."""
