// expect: script_error limit_memory timeout
var a = { length: 2 ** 53 - 2 }; Array.prototype.unshift.call(a, 1);
