// expect: limit_stack
var o = {}; o.toJSON = JSON.stringify.bind(null, o); return JSON.stringify(o);
