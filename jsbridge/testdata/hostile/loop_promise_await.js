// expect: timeout
async function f() { for (;;) await null; }
f();
return await f();
