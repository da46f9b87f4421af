// expect: script_error
setTimeout('1', 0);
