// expect: limit_stack
var o = {}; o.toString = String.bind(null, o); return '' + o;
