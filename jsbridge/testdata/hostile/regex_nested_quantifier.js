// expect: limit_regex
/^(?=x)(x+x+)+y/.test('x'.repeat(40));
