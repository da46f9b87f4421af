// expect: timeout
class A { static x = (function () { for (;;) {} })(); }
