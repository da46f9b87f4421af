// expect: script_error
(async function () {}).constructor('return 1')();
