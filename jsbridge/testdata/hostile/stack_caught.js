// expect: limit_stack script_error timeout
function f() { try { f(); } catch (e) { f(); } } f();
