// expect: ok limit_regex
/(?<=(x+x+)+y)z/.test('x'.repeat(60) + 'z');
