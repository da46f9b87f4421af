// expect: ok limit_regex timeout
var s = 'x'.repeat(1 << 22);
if (/(?=y)(.*)+z$/.test(s) || /(?:x+)*(?=y)/.test(s)) throw new Error('a letter that is not there');
if (!/(?=y)(.*)+z$/.test(s + 'yz')) throw new Error('a letter that is there was not found');
return false;
