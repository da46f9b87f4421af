// expect: script_error limit_memory timeout
1n < '9'.repeat(1 << 23);
