// expect: limit_output ok script_error
return [new String('x'.repeat(1 << 24))];
