// expect: script_error
Reflect.construct(Function, ['return 1'])();
