// expect: limit_stack script_error
var f = function () { f.bind(null)(); }; f();
