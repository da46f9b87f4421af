// expect: limit_stack script_error
var C = {}; Object.defineProperty(C, Symbol.hasInstance, { value: function (x) { return x instanceof C; } }); ({}) instanceof C;
