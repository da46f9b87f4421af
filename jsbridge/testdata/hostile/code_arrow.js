// expect: script_error
(() => 1).constructor('return 1')();
