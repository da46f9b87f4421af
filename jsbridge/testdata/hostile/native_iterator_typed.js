// expect: timeout script_error limit_memory
var it = { next: Object.prototype.valueOf };
it[Symbol.iterator] = Object.prototype.valueOf;
new Uint8Array(it);
