// expect: script_error limit_memory timeout
Array.from({ length: 1e9 });
