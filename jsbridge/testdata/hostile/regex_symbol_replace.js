// expect: limit_regex
return RegExp.prototype[Symbol.replace].call(/(?=x)(x+x+)+y/, 'x'.repeat(40), '');
