// expect: limit_stack script_error
var o = { get a() { return structuredClone(o); } }; structuredClone(o);
