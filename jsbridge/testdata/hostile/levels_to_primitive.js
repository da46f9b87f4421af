// expect: limit_stack
var o = {}; o[Symbol.toPrimitive] = Reflect.apply.bind(null, String, null, [o]); return '' + o;
