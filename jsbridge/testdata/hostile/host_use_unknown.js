// expect: forbidden
V8.Use('lib/none');
