// expect: script_error limit_memory timeout
Object.defineProperties({}, new Proxy({}, { ownKeys: function () { return new Array(1e6).fill('x'); } }));
