// expect: script_error
eval('1');
