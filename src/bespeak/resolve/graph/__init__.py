"""The compiled graph of a consumer: model, compiler, checks, drawing and replacements."""
