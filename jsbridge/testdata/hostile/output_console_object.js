// expect: ok
console.log(new Array(1e6).fill('xxxxxxxxxxxx')); return 1;
