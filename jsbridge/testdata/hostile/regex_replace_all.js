// expect: limit_regex
return 'x'.repeat(40).replaceAll(/(?=x)(x+x+)+y/g, '');
