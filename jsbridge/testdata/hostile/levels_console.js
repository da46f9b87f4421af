// expect: limit_stack
var o = { toJSON: function () { console.log(d); return 1; } }; for (var i = 0; i < 500; i++) o = [o]; var d = o; console.log(d);
