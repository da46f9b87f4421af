// expect: limit_stack limit_memory
var t = {}; t[Symbol.iterator] = Promise.all.bind(Promise, t); return await Promise.all(t);
