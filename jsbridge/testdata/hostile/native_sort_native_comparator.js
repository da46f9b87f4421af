// expect: timeout script_error limit_memory
var big = []; for (var i = 0; i < 1e6; i++) big.push(i);
var s = 'ä'.repeat(1 << 16); var strs = big.map(function () { return s; }); Array.prototype.sort.call(strs, Function.prototype.call.bind(String.prototype.localeCompare));
