// expect: ok timeout script_error limit_memory limit_stack result_invalid
JSON.parse('['.repeat(3e6));
