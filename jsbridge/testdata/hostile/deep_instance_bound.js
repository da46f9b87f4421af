// expect: ok timeout script_error limit_memory limit_stack result_invalid
var F = function () {}; for (var i = 0; i < 1e6; i++) F = F.bind(); return {} instanceof F;
