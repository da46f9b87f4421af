// expect: timeout limit_memory script_error
var o = [3n], i = 0; for (;;) { o[i++ % 1] <<= 1000n; if (i % 1000 === 0) (o[0] + 1n) / (o[0] >> 5000n); }
