// expect: script_error
(0, eval)('1');
