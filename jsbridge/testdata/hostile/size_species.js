// expect: script_error limit_memory timeout ok
var a = [1]; a.constructor = { [Symbol.species]: function (n) { return new Array(4e9); } }; a.map(function (x) { return x; }).fill(1);
