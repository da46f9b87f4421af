// expect: limit_stack
function f(k, v) { return JSON.stringify([1], f); } return JSON.stringify([1], f);
