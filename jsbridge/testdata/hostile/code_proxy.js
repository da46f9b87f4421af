// expect: script_error
new Proxy(function () {}, {}).constructor('return 1')();
