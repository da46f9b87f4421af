// expect: script_error timeout limit_memory
var v = new DataView(new ArrayBuffer(8)); v.setInt8(7, 3); var a = v['getBig' + 'Int64'](0); for (;;) a *= a;
