// expect: limit_stack
var f = [].sort.bind([2, 1], function () { return f(); }); return f();
