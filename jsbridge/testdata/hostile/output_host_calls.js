// expect: limit_output
for (;;) V8.Cache.Get('x');
