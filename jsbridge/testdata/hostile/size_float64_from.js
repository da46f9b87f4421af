// expect: script_error limit_memory timeout
Float64Array.from({ length: 2 ** 40 });
