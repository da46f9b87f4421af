// expect: timeout script_error limit_memory
var it = { next: Object.prototype.valueOf, value: ['a', 2] };
it[Symbol.iterator] = Object.prototype.valueOf;
Object.fromEntries(it);
