// expect: limit_stack script_error
var p = new Proxy({}, { get: function () { return p.x; } }); p.x;
