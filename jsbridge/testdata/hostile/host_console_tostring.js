// expect: timeout
console.log({ toJSON: function () { for (;;) {} } }); return 1;
