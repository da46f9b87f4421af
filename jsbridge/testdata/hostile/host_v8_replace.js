// expect: ok script_error
V8.Cache = null; return typeof V8.Cache;
