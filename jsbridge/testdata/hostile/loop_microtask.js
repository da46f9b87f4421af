// expect: timeout
function f() { queueMicrotask(f); }
f();
