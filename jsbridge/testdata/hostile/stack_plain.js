// expect: limit_stack script_error
function f() { f(); } f();
