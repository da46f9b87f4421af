// expect: limit_stack script_error
function f() { f.apply(null, arguments); } f();
