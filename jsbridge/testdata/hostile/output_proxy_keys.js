// expect: limit_output script_error timeout limit_memory
return new Proxy({}, { ownKeys: function () { return Array.from({ length: 1e6 }, function (_, i) { return 'k' + i; }); }, getOwnPropertyDescriptor: function () { return { value: 'x'.repeat(1000), enumerable: true, configurable: true }; }, get: function () { return 'x'.repeat(1000); } });
