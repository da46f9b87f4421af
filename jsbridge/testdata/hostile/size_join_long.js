// expect: script_error limit_memory timeout
new Array(1e6).fill('').join('x'.repeat(1e6));
