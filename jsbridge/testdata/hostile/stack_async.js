// expect: limit_stack script_error timeout
async function f() { await f(); } return await f();
