// expect: limit_stack script_error
var o = { toJSON: function () { return JSON.stringify(o); } }; JSON.stringify(o);
