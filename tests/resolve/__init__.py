"""Tests of the engine, by its packages. Where each rule of registration (design 4) is tested:

* a hint that cannot be evaluated: reading/test_signatures_refused.py, and reading/test_name_lookup.py for what names mean
* an outcome or a question that a client could supply: reading/test_misplaced_outcomes.py
* a marker where it has no effect: reading/test_misplaced_markers.py; one that a signature hides: reading/test_hidden_markers.py
* a marker anywhere, in generated modules: reading/test_generated_signatures.py, whose tables are in reading/generated
* a marker that is not one call, a parameter not fillable by name, a return type that asks twice: reading/test_signatures_refused.py
* a parameter that nobody fills, a cycle: graph/test_compiler_refused.py; a name nearly an argument's: graph/test_near_misses.py
* types that cannot agree: reading/test_type_hints.py
* a form that the protocol does not allow: asking/test_form_schemas_refused.py
* options that conflict, keys that are equal: graph/test_compiler_options.py; names in keys: graph/test_compiler_keys.py
* all faults at once, with place, drawing and fix: graph/test_compiler_faults.py
"""
