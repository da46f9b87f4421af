// expect: ok
var w = new WeakSet(); for (var i = 0; i < 1e3; i++) w.add({}); return 1;
