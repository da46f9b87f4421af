// expect: script_error
var o = {}; for (var i = 0; i < 1e5; i++) o = { o: o }; V8.ApiEngine.Run('x', o);
