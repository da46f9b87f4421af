// expect: limit_stack
var o = {}; o[Symbol.split] = ''.split.bind('a', o); return 'a'.split(o);
