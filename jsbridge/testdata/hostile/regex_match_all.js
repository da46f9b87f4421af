// expect: limit_regex
return [...'x'.repeat(40).matchAll(/(?=x)(x+x+)+y/g)];
