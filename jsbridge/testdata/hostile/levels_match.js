// expect: limit_stack
var o = {}; o[Symbol.match] = ''.match.bind('a', o); return 'a'.match(o);
