// expect: ok timeout
console.log({ get a() { for (;;) {} } }); return 1;
