// expect: limit_stack
function f(k, v) { return JSON.parse('['.repeat(500) + ']'.repeat(500), f); } return JSON.parse('['.repeat(500) + ']'.repeat(500), f);
