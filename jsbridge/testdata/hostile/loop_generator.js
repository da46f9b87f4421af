// expect: timeout
function* g() { for (;;) yield 1; }
for (var x of g()) {}
