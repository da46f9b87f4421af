// expect: limit_stack script_error
function f() { 'a'.replace(/a/, f); } f();
