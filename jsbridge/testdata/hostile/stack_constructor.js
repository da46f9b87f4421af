// expect: limit_stack script_error
class A { constructor() { new A(); } } new A();
