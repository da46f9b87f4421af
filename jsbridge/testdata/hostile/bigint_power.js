// expect: script_error timeout limit_memory
2n ** 99999999999n;
