// expect: limit_stack
var o = {}; o.toJSON = console.log.bind(null, o); console.log(o);
