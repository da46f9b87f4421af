// expect: limit_regex
return new RegExp('^(?=x)(x+x+)+y').test('x'.repeat(40));
