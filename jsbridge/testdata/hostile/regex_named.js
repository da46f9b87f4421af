// expect: limit_regex
return /(?=x)(?<a>x+x+)+y/.exec('x'.repeat(40));
