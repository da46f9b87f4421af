// expect: script_error limit_memory timeout
Object.assign({}, 'x'.repeat(1 << 24));
