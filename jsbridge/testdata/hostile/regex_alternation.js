// expect: ok limit_regex
/^(?=a)(a|a)*$/.test('a'.repeat(40) + 'b');
