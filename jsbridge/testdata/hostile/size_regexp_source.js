// expect: script_error limit_memory timeout
new RegExp('x'.repeat(1 << 24));
