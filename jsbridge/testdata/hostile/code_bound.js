// expect: script_error
(function () {}).bind().constructor('return 1')();
