// expect: ok script_error limit_memory timeout limit_stack result_invalid
JSON.parse('['.repeat(3e6));
