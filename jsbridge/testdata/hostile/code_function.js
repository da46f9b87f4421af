// expect: script_error
new Function('return 1')();
