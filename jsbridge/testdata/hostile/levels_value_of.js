// expect: limit_stack
var o = {}; o.valueOf = Number.bind(null, o); return +o;
