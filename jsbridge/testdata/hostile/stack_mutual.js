// expect: limit_stack script_error
function f() { g(); } function g() { f(); } f();
