// expect: script_error
throw new Error('x'.repeat(1 << 24));
