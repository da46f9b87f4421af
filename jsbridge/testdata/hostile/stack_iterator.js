// expect: limit_stack script_error
var o = {}; o[Symbol.iterator] = function () { return [...o][0]; }; [...o];
