// expect: script_error limit_memory timeout
'x'.padStart(1e9);
