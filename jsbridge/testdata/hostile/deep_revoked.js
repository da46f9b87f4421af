// expect: ok script_error limit_memory timeout limit_stack result_invalid
var r = Proxy.revocable({}, {}); r.revoke(); r.proxy.x;
