// expect: script_error
throw Symbol('x');
