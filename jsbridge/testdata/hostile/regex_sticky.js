// expect: limit_regex
return /(?=x)(x+x+)+y/y.exec('x'.repeat(40));
