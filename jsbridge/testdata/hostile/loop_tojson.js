// expect: timeout
return { toJSON: function () { for (;;) {} } };
