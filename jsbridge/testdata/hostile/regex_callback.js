// expect: limit_regex
return 'ab'.replace(/a|b/g, function () { return /^(?=x)(x+x+)+y/.test('x'.repeat(40)); });
