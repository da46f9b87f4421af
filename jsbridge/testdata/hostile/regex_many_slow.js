// expect: limit_regex timeout
for (;;) /^(?=x)(x+x+)+y/.test('x'.repeat(24));
