// expect: limit_regex
try { /^(?=x)(x+x+)+y/.test('x'.repeat(40)); } catch (e) { return 'caught'; } return 'no match';
