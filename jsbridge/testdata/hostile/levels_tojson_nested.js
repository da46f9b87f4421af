// expect: limit_stack
var d = { toJSON: function () { return JSON.stringify(d); } }; for (var i = 0; i < 500; i++) d = { a: d }; return JSON.stringify(d);
