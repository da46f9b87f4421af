// expect: script_error ok
V8.Cache.Set('../other', 'x'); return 1;
