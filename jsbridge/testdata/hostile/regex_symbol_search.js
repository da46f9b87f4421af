// expect: limit_regex
return RegExp.prototype[Symbol.search].call(/(?=x)(x+x+)+y/, 'x'.repeat(40));
