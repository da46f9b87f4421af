// expect: timeout script_error limit_memory
var big = []; for (var i = 0; i < 1e6; i++) big.push(i);
var it = { next: function () { return { value: big }; } };
it[Symbol.iterator] = function () { return it; };
return Array.from(it).flat().length;
