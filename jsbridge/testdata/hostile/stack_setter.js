// expect: limit_stack script_error
var o = { set a(v) { this.a = v; } }; o.a = 1;
