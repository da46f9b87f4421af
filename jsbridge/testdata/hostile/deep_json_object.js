// expect: ok script_error limit_memory timeout limit_stack result_invalid
JSON.parse('{"a":'.repeat(1e6));
