// expect: limit_stack script_error timeout
function f() { new Promise(f); } f();
