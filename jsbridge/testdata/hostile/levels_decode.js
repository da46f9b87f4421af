// expect: script_error
var a = []; for (var i = 0; i < 1e5; i++) a = [a]; return new TextDecoder().decode(a);
