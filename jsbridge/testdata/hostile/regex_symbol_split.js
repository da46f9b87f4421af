// expect: limit_regex
return RegExp.prototype[Symbol.split].call(/(?=x)(x+x+)+y/, 'x'.repeat(40));
