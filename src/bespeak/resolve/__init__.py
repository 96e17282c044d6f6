"""The heart: markers, graph, forms, questions and rounds. Knows no transport, server, client or JSON-RPC."""
