// expect: script_error
V8.Cache.GetAsync.constructor('return 1')();
