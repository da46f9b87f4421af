// expect: script_error
Object.getOwnPropertyDescriptor({ get a() { return 1; } }, 'a').get.constructor('return 1')();
