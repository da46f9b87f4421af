// expect: timeout
async function* g() { for (;;) yield 1; }
for await (var x of g()) {}
