// expect: script_error
V8.Cache.Set('k'.repeat(1 << 20), 'x');
