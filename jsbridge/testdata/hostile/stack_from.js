// expect: limit_stack script_error
function f() { Array.from([1], f); } f();
