// expect: script_error
(function* () {}).constructor('yield 1')().next();
