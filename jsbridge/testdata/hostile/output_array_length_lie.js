// expect: limit_output script_error timeout
return new Proxy([], { get: function (t, k) { return k === 'length' ? 2 ** 53 - 1 : undefined; } });
