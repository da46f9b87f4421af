// expect: limit_regex
return RegExp.prototype[Symbol.match].call(/(?=x)(x+x+)+y/, 'x'.repeat(40));
