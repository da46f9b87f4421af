// expect: limit_stack script_error
var o = { toJSON: function () { console.log(o); return 1; } }; console.log(o);
