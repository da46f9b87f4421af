// expect: script_error
return JSON.parse('{"a":1,"b":2}', function (k, v) { if (k === 'a') this.b = { a: 1, b: 2 }; return v; });
