// expect: ok timeout script_error limit_memory limit_stack result_invalid
JSON.parse('['.repeat(500) + ']'.repeat(500), function f(k, v) { return JSON.parse('[1]', f); });
