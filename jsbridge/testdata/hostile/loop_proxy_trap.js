// expect: timeout
return Object.keys(new Proxy({}, { ownKeys: function () { for (;;) {} } }));
