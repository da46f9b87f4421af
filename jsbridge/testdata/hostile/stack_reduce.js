// expect: limit_stack script_error
function f() { [1, 2].reduce(f); } f();
