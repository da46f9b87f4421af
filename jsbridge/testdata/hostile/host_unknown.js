// expect: script_error
V8.Nothing.Run();
