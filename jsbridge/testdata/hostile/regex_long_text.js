// expect: limit_regex timeout
var s = 'x'.repeat(1 << 22); return /(?=y)(.*)+z$/.test(s) || /(?:x+)*(?=y)/.test(s);
