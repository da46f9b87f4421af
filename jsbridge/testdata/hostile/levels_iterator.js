// expect: limit_stack
var o = {}; o[Symbol.iterator] = Array.from.bind(null, o); return [...o];
