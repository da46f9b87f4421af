// expect: script_error limit_memory timeout
1n >> -99999999999n;
