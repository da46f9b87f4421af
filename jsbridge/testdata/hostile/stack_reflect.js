// expect: limit_stack script_error
function f() { Reflect.apply(f, null, []); } f();
