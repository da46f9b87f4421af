// expect: limit_output ok script_error
return 'x'.repeat(1 << 24);
