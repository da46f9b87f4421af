// expect: script_error limit_memory timeout
2n ** 99999999999n;
