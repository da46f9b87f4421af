// expect: timeout
return [1, 2].indexOf(3, { valueOf: function () { for (;;) {} } });
