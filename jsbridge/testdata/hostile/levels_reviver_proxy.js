// expect: script_error
return JSON.parse('[1,2]', function (k, v) { if (k === '0') this[1] = new Proxy({}, { ownKeys: () => ['a', 'b'], getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }), get: (t, k, r) => k === 'a' ? 1 : r }); return v; });
