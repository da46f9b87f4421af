// expect: limit_stack script_error
function f() { [2, 1].sort(f); return 0; } f();
