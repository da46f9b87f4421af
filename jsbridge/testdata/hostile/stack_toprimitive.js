// expect: limit_stack script_error
var o = { [Symbol.toPrimitive]: function () { return `${o}`; } }; `${o}`;
