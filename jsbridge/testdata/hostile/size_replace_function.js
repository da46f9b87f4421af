// expect: script_error limit_memory timeout
var y = 'y'.repeat(1e7); 'x'.repeat(1e6).replace(/x/g, function () { return y; });
