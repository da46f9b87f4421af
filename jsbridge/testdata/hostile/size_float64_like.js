// expect: script_error limit_memory timeout
new Float64Array({ length: 2 ** 40 });
