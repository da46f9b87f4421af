// expect: ok
return /^(x+x+)+y/.test('x'.repeat(1000));
