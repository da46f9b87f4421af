// expect: limit_stack
var o = {}; o[Symbol.replace] = ''.replace.bind('a', o); return 'a'.replace(o, 'x');
