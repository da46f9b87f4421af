// expect: ok
console.log(...new Array(6e4).fill('x'.repeat(1000))); return 1;
