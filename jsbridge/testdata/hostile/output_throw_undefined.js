// expect: script_error
throw undefined;
