// expect: limit_regex
return 'x'.repeat(40).match(/^(?=x)(x+x+)+y/);
