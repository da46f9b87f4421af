// expect: script_error
V8.Cache.Get(new Proxy({}, {}));
