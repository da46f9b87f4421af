// expect: ok
console.log('x'.repeat(1 << 24)); return 1;
