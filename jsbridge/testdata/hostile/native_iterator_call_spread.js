// expect: timeout script_error limit_memory
var it = { next: Object.prototype.valueOf };
it[Symbol.iterator] = Object.prototype.valueOf;
Math.max(...it);
