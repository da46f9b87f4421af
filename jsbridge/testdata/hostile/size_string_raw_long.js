// expect: script_error limit_memory timeout
var s = 'x'.repeat(1e6); String.raw({ raw: new Array(1e6).fill(s) });
