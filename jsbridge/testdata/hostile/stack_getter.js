// expect: limit_stack script_error
var o = { get a() { return this.a; } }; o.a;
