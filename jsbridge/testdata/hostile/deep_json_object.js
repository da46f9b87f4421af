// expect: ok timeout script_error limit_memory limit_stack result_invalid
JSON.parse('{"a":'.repeat(1e6));
