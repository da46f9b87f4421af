// expect: ok timeout script_error limit_memory limit_stack result_invalid
var r = Proxy.revocable({}, {}); r.revoke(); r.proxy.x;
