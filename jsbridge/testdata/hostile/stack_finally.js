// expect: limit_stack script_error timeout
function f() { try { f(); } finally { f(); } } f();
