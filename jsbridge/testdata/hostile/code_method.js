// expect: script_error
({ m() {} }).m.constructor('return 1')();
