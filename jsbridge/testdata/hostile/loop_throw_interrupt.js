// expect: timeout
function f() { try { for (;;) {} } catch (e) { f(); } }
f();
