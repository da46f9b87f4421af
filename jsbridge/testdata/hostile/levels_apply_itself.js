// expect: limit_stack
var a = [Reflect.apply, null]; a[2] = a; return Reflect.apply.apply(null, a);
