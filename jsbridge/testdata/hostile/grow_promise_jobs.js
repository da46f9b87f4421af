// expect: limit_memory script_error timeout
for (;;) Promise.resolve().then(function () {});
