// expect: timeout script_error limit_memory
var it = { next: Object.prototype.valueOf, value: [1, 2] };
it[Symbol.iterator] = Object.prototype.valueOf;
new Map(it);
