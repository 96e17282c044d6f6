"""The engine: markers, graph, questions and rounds. It knows no transport, server or client."""
