// expect: script_error limit_memory timeout
'ä'.repeat(2 ** 53);
