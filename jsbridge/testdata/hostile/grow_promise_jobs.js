// expect: script_error limit_memory timeout
for (;;) Promise.resolve().then(function () {});
