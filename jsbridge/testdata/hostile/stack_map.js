// expect: limit_stack script_error
function f() { [1].map(f); } f();
