// expect: limit_stack
var a = []; Object.defineProperty(a, Symbol.isConcatSpreadable, { get: Array.prototype.concat.bind([], a) }); return [].concat(a);
