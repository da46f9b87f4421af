// expect: script_error
V8.Use('lib/none');
