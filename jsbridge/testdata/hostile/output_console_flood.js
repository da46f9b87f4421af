// expect: ok
for (var i = 0; i < 1e5; i++) console.log('line\n' + i); return 1;
