// expect: limit_regex
return 'x'.repeat(40).split(/(?=x)(x+x+)+y/);
