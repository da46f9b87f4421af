// expect: script_error ok
V8.Cache.Set('k'.repeat(1 << 20), 'x');
