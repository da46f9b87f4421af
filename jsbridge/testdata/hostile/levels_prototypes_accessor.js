// expect: ok limit_memory
var o = { get x() { return 1; }, set y(v) {} }; for (var i = 0; i < 3e5; i++) o = Object.create(o); o.y = 1; return o.x;
