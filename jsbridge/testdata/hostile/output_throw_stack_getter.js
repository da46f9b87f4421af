// expect: script_error timeout
var e = new Error('x'); Object.defineProperty(e, 'stack', { get: function () { for (;;) {} } }); throw e;
