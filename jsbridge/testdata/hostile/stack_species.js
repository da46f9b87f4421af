// expect: limit_stack script_error
class A extends Array { static get [Symbol.species]() { return function () { return new A(1).map(function (x) { return x; }); }; } } new A(1).map(function (x) { return x; });
