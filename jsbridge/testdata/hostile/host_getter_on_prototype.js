// expect: timeout
class A { get x() { for (;;) {} } }
return new A().x;
