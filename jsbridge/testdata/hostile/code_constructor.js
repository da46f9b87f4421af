// expect: script_error
(function () {}).constructor('return 1')();
