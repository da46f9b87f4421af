// expect: script_error limit_memory timeout
new Array(1e9).fill(0);
