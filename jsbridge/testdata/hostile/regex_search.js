// expect: limit_regex
return 'x'.repeat(40).search(/(?=x)(x+x+)+y/);
