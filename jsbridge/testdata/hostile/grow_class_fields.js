// expect: limit_memory
class A { a = [1, 2, 3]; b = {}; } var l = []; for (;;) l.push(new A());
