// expect: script_error
new WebAssembly.Module(new Uint8Array(8));
