// expect: script_error
var o = {}; o.o = o; V8.ApiEngine.Run('x', o);
