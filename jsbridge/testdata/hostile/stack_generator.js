// expect: limit_stack script_error timeout
function* g() { yield* g(); } for (var x of g()) {};
