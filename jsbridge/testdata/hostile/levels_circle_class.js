// expect: script_error
class A {} class B extends A {} Object.setPrototypeOf(A.prototype, new Proxy(B.prototype, {})); return new B().x;
