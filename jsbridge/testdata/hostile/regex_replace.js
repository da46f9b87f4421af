// expect: limit_regex
return 'x'.repeat(40).replace(/^(?=x)(x+x+)+y/g, '');
