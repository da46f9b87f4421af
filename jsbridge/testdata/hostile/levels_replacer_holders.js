// expect: script_error
return JSON.stringify({ a: 1 }, function (k, v) { return { a: { a: 1 } }; });
