// expect: timeout
return [3, 1, 2].sort(function () { for (;;) {} });
