// expect: script_error limit_memory timeout
Object.keys('x'.repeat(1 << 24));
