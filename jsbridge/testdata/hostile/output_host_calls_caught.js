// expect: limit_output
for (;;) { try { V8.Cache.Get(); } catch (e) {} };
