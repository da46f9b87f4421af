// expect: limit_output script_error timeout limit_memory
for (var i = 0; ; i++) V8.Response.Header('X-A' + i, 'x'.repeat(1000));
