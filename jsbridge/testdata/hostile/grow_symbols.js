// expect: limit_memory
var a = []; for (var i = 0; ; i++) a.push(Symbol.for('s' + i));
