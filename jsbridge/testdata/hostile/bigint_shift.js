// expect: script_error timeout limit_memory
1n << 99999999999n;
