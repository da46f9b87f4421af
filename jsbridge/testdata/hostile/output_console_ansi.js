// expect: ok
console.log('\u001b[31mred\u0007'); return 1;
