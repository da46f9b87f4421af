// expect: script_error timeout
throw new Proxy({}, { get: function () { for (;;) {} } });
