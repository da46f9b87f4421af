// expect: script_error timeout limit_memory
2n ** -1n;
