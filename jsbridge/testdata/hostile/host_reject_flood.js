// expect: ok limit_memory timeout
for (var i = 0; i < 1e5; i++) Promise.reject(new Error('x' + i)); return 1;
