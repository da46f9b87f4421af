// expect: limit_stack script_error
var o = { valueOf: function () { return +o; } }; +o;
