// expect: limit_stack script_error
var o = { toString: function () { return '' + this; } }; '' + o;
