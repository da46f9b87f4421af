// expect: timeout
queueMicrotask(function () { for (;;) {} }); return 1;
