// expect: script_error timeout limit_memory
1n < '9'.repeat(1 << 23);
